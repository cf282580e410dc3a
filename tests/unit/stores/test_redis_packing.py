"""What is handed to hiredis: never a number, because a signal whose handler raises would end the process there."""

import subprocess
import sys

from sameas.identity.key import record_digest
from sameas.once.record import ClaimRequest, Identity, Lease, Outcome
from sameas.stores.redis import RedisBackend
from sameas.stores.redis_commands import Scan, head_request, in_full, remembered, scan_request, taught, wait_request
from sameas.stores.redis_health import QUESTIONS

IDENTITY = Identity(record_digest("t", "s", "k"), "t", "s", "k")
REQUEST = ClaimRequest(IDENTITY, "f", "a1", 30_000_000, 60_000_000)
LEASE = Lease(IDENTITY, 1_700_000_000_000_000, "a1")


class NoLink:
    """Stands where nothing is asked."""


def commands(skew):
    backend = RedisBackend(NoLink(), NoLink(), wait=2, skew_micros=skew)
    scripts = (
        backend.claim(REQUEST),
        backend.renew(LEASE, 1, 2),
        backend.complete(LEASE, Outcome(b"x", "text/plain", {"status": 200}), 5),
        backend.fail(LEASE, Outcome(b"x", ""), 5),
        backend.release(LEASE),
        backend.forget(IDENTITY),
        backend.read(IDENTITY),
    )
    return [next(script) for script in scripts]


def test_no_request_holds_a_number():
    requests = [scan_request(Scan(b"*", 500, (0, 7))), head_request(b"k", 100), wait_request(2, 100), *QUESTIONS]
    for skew in (0, 5):
        some = commands(skew)
        requests += [*map(remembered, some), *map(in_full, some), *taught(some)]
    assert {type(word) for request in requests for word in request} <= {bytes, str}


def test_signals_whose_handlers_raise_do_not_end_the_process_while_requests_are_packed():
    code = """
import signal
from sameas.stores.redis_commands import remembered
from sameas.stores.redis_connection import pack
from tests.unit.stores.test_redis_packing import commands

class Interrupted(Exception): pass

def interrupt(*_):
    raise Interrupted

requests = [remembered(command) for command in commands(5)]
packed = interrupted = 0
signal.signal(signal.SIGALRM, interrupt)
while packed < 200_000 or not interrupted:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0002)
        for _ in range(1_000_000):
            for request in requests:
                pack(request)
                packed += 1
    except Interrupted:
        interrupted += 1
print("alive")
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (told.returncode, told.stdout) == (0, "alive\n"), told.stderr

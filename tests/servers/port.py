"""A free TCP port on the loopback address.

Ports come from below the kernel's ephemeral range: while a killed server is down, a reconnecting client could
otherwise be given the server's own port and keep it from starting again.
"""

import random
import socket
from pathlib import Path

LOOPBACK = "127.0.0.1"
EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
FIRST_PORT = 10_000
IANA_FIRST_EPHEMERAL = 49_152
TRIES = 200

_random = random.SystemRandom()


def free_port(*, and_at: int = 0) -> int:
    """A port nobody listens on; with `and_at`, the port that many further on is free too."""
    limit = _first_ephemeral() - and_at
    for _ in range(TRIES):
        port = _random.randrange(FIRST_PORT, limit)
        if _is_free(port) and (not and_at or _is_free(port + and_at)):
            return port
    message = f"no free port found between {FIRST_PORT} and {limit} in {TRIES} tries"
    raise OSError(message)


def _first_ephemeral() -> int:
    if EPHEMERAL_RANGE.exists():
        first = int(EPHEMERAL_RANGE.read_text().split()[0])
        if first > FIRST_PORT + TRIES:
            return first
    return IANA_FIRST_EPHEMERAL


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # Without it a port in TIME_WAIT looks taken, although every server here could bind it.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True

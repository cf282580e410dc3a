"""No observer that is shipped writes a client's key, a payload or a result: each names the record by its digest."""

import importlib
import pkgutil
from uuid import uuid4

import pytest

from sameas.identity.key import record_digest
from sameas.once import observers
from sameas.once.errors import KeyReused, StoredFailure
from sameas.once.policy import Policy
from tests.servers.every_observer import every_observer, read_observed
from tests.unit.once.observers.drives import shared_by_two

# Not a word of the source, lines of which are in stack traces.
CANARY = uuid4().hex


def test_every_observer_that_is_shipped_is_put_to_the_test(tmp_path) -> None:
    names = [f"{observers.__name__}.{each.name}" for each in pkgutil.iter_modules(observers.__path__)]
    shipped = {
        kind
        for name in names
        for kind in vars(importlib.import_module(name)).values()
        if isinstance(kind, type) and kind.__module__ == name and kind.__name__.endswith("Observer")
    }
    assert shipped
    assert shipped <= {type(each) for each in every_observer(tmp_path)}


def test_a_record_is_named_by_its_digest_and_never_by_its_key(drive_type, tmp_path) -> None:
    drive = drive_type(*every_observer(tmp_path), policy=Policy(keep_errors=(ValueError,)))

    def work(ctx):
        return f"result-{CANARY}"

    def fail(ctx):
        raise ValueError(f"message-{CANARY}")

    for _ in range(2):
        drive.run(work, scope="charge", key=f"key-{CANARY}", tenant="acme", payload=f"payload-{CANARY}")
    with pytest.raises(KeyReused):
        drive.run(work, scope="charge", key=f"key-{CANARY}", tenant="acme", payload=f"other-{CANARY}")
    for kind in (ValueError, StoredFailure):
        with pytest.raises(kind):
            drive.run(fail, scope="charge", key=f"failed-{CANARY}")
    drive.run_many(lambda ctx, payload: payload, [f"payload-{CANARY}"], keys=[f"batch-{CANARY}"], scope="charge")
    shared_by_two(drive, scope="charge", key=f"shared-{CANARY}")
    drive.run(work, scope="content", payload=f"payload-{CANARY}")
    drive.forget("charge", f"key-{CANARY}", tenant="acme")
    written = read_observed(tmp_path)
    assert [kind for kind, text in written.items() if "charge" not in text] == []
    assert [kind for kind, text in written.items() if CANARY in text] == []
    record = record_digest("acme", "charge", f"key-{CANARY}").hex()
    assert {kind for kind, text in written.items() if record in text} == {"audit", "logs", "traces"}

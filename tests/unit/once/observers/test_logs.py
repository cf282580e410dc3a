"""Log lines, read back through structlog and through standard logging."""

import json
import logging
from contextlib import nullcontext

import pytest
import structlog
from structlog.testing import capture_logs

from sameas.identity.key import record_digest
from sameas.once.errors import OutcomeUnknown, ResultNotKept, StoredFailure, StoreUnavailable
from sameas.once.observe import Settled
from sameas.once.observers.logs import LogObserver
from sameas.once.policy import Policy
from sameas.once.record import LOST, Identity
from sameas.stores.memory import MemoryBackend
from tests.unit.once.observers.drives import Clock, shared_by_two, steal


@pytest.fixture(autouse=True)
def _fresh_structlog():
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


def digest(tenant, key):
    return record_digest(tenant, "charge", key).hex()


def test_each_call_that_ends_is_one_line(drive_type) -> None:
    drive = drive_type(LogObserver())
    with capture_logs() as lines:
        drive.run(lambda ctx: "done", scope="charge", key="order-1", tenant="acme")
        drive.run(lambda ctx: "done", scope="charge", key="order-1", tenant="acme")
    assert [line["event"] for line in lines] == ["call ended", "call ended"]
    fresh, replay = lines
    assert (fresh["how"], fresh["replay"], fresh["attempt"]) == ("fresh", False, 1)
    assert (replay["how"], replay["replay"], replay["attempt"]) == ("replay", True, 1)
    for line in lines:
        assert (line["record"], line["tenant"], line["scope"]) == (digest("acme", "order-1"), "acme", "charge")
        assert line["seconds"] >= 0
        assert line["waited"] == 0
        assert line["log_level"] == "info"


def test_a_shared_answer_is_told_with_its_waiting(drive_type) -> None:
    drive = drive_type(LogObserver())
    with capture_logs() as lines:
        shared_by_two(drive, scope="charge", key="order-1")
    shared = next(line for line in lines if line["how"] == "shared")
    assert shared["replay"] is True
    assert shared["waited"] > 0


def test_an_error_is_told_by_its_type_and_never_by_its_message(drive_type) -> None:
    def work(ctx):
        raise ValueError("card 4111")

    drive = drive_type(LogObserver())
    with capture_logs() as lines, pytest.raises(ValueError):
        drive.run(work, scope="charge", key="order-1", payload={"card": "4111"})
    assert len(lines) == 1
    assert (lines[0]["how"], lines[0]["error"], lines[0]["replay"]) == ("error", "ValueError", False)
    assert lines[0]["log_level"] == "warning"
    assert "4111" not in repr(lines)


def test_a_kept_failure_is_a_replay(drive_type) -> None:
    def work(ctx):
        raise ValueError("declined")

    drive = drive_type(LogObserver(), policy=Policy(keep_errors=(ValueError,)))
    with capture_logs() as lines:
        with pytest.raises(ValueError):
            drive.run(work, scope="charge", key="order-1")
        with pytest.raises(StoredFailure):
            drive.run(work, scope="charge", key="order-1")
    assert [(line["error"], line["replay"]) for line in lines] == [("ValueError", False), ("StoredFailure", True)]


@pytest.mark.parametrize("how", ["raise", "return"])
def test_a_result_that_could_not_be_stored_is_a_warning(drive_type, how) -> None:
    class Down(MemoryBackend):
        def complete(self, lease, outcome, retain_for):
            yield from ()
            raise StoreUnavailable

    drive = drive_type(LogObserver(), backend=Down(), policy=Policy(hand_in_for=0, on_unstored=how))
    with capture_logs() as lines, nullcontext() if how == "return" else pytest.raises(OutcomeUnknown):
        drive.run(lambda ctx: "done", scope="charge", key="order-1")
    ended = lines[-1]
    assert (ended["event"], ended["stored"], ended["log_level"]) == ("call ended", False, "warning")
    assert (ended["how"], ended.get("error")) == (("fresh", None) if how == "return" else ("error", "OutcomeUnknown"))


def test_a_result_that_cannot_be_kept_is_a_warning_where_its_work_was_done(drive_type) -> None:
    drive = drive_type(LogObserver())
    with capture_logs() as lines:
        drive.run(lambda ctx: object(), scope="charge", key="order-1")
        with pytest.raises(ResultNotKept):
            drive.run(lambda ctx: object(), scope="charge", key="order-1")
    fresh, replay = lines
    assert (fresh["how"], fresh["kept"], fresh["log_level"]) == ("fresh", False, "warning")
    assert (replay["how"], replay["kept"], replay["replay"]) == ("replay", False, True)


def test_neither_payload_nor_result_nor_fingerprint_is_written(drive_type) -> None:
    drive = drive_type(LogObserver())
    with capture_logs() as lines:
        drive.run(lambda ctx: {"iban": "DE89"}, scope="charge", key="order-1", payload={"pin": "1234"})
        drive.run(lambda ctx: None, scope="charge", key="order-1", payload={"pin": "1234"})
        record = drive.engine.store.backend.inner._records.popitem()[1]
    assert len(lines) == 2
    written = repr(lines)
    assert "DE89" not in written
    assert "1234" not in written
    assert record.fingerprint
    assert record.fingerprint not in written


def test_a_claim_that_is_lost_is_a_warning(drive_type) -> None:
    clock = Clock()
    drive = drive_type(LogObserver(), backend=MemoryBackend(clock))

    def work(ctx):
        steal(drive.backend, clock, ctx.identity, lease_for=30)
        return "mine"

    with capture_logs() as lines:
        assert drive.run(work, scope="charge", key="order-1", lease=30) == "theirs"
    lost = next(line for line in lines if line["event"] == "claim lost")
    assert (lost["operation"], lost["record"], lost["log_level"]) == ("complete", digest("", "order-1"), "warning")
    assert lines[-1]["event"] == "call ended"
    assert lines[-1]["attempt"] == 2


def test_a_renewal_that_is_refused_is_no_alarm() -> None:
    identity = Identity(b"digest", "acme", "charge", "order-1")
    with capture_logs() as lines:
        LogObserver().on(Settled("renew", identity, LOST, 0.001))
    assert [(line["event"], line["log_level"]) for line in lines] == [("lease not renewed", "info")]


def test_a_store_that_fails_is_an_error_without_its_message(drive_type) -> None:
    class Down(MemoryBackend):
        def claim(self, request):
            yield from ()
            raise StoreUnavailable("cannot reach db.example with password hunter2") from ConnectionError("hunter2")

    drive = drive_type(LogObserver(), backend=Down())
    with capture_logs() as lines, pytest.raises(StoreUnavailable):
        drive.run(lambda ctx: "done", scope="charge", key="order-1")
    assert lines[0] == {
        "event": "store failed",
        "operation": "claim",
        "error": "StoreUnavailable",
        "cause": "ConnectionError",
        "log_level": "error",
    }
    assert "hunter2" not in repr(lines)


def test_a_payload_without_a_key_is_a_warning(drive_type) -> None:
    drive = drive_type(LogObserver())
    with capture_logs() as lines, pytest.raises(Exception, match="NaN|nan|finite"):
        drive.run(lambda ctx: "done", scope="charge", payload={"amount": float("nan")})
    assert (lines[0]["event"], lines[0]["scope"], lines[0]["log_level"]) == ("key failed", "charge", "warning")


def test_each_removal_is_one_line(drive_type) -> None:
    clock = Clock()
    drive = drive_type(LogObserver(), backend=MemoryBackend(clock))
    for key in ("a", "b", "c"):
        drive.run(
            lambda ctx: "done", scope="charge", key=key, tenant="acme", retention=60, tags=["t"] if key == "b" else []
        )
    with capture_logs() as lines:
        drive.forget("charge", "a", tenant="acme")
        drive.forget("charge", "a", tenant="acme")
        drive.forget_where(tag="t")
        drive.forget_where(tag="t")
        clock.forward(61)
        drive.prune()
    assert [(line["event"], line["why"], line["count"]) for line in lines] == [
        ("records removed", "forgotten", 1),
        ("records removed", "forgotten", 1),
        ("records removed", "expired", 1),
    ]
    assert (lines[0]["record"], lines[0]["tenant"]) == (digest("acme", "a"), "acme")
    assert lines[1]["tag"] == "t"


def test_lines_go_through_standard_logging_where_structlog_is_set_up_so(drive_type, caplog) -> None:
    structlog.configure(
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[structlog.stdlib.add_logger_name, structlog.stdlib.render_to_log_kwargs],
    )
    drive = drive_type(LogObserver())
    with caplog.at_level(logging.INFO, logger="sameas"):
        drive.run(lambda ctx: "done", scope="charge", key="order-1")
    (record,) = caplog.records
    assert (record.name, record.levelname, record.getMessage()) == ("sameas", "INFO", "call ended")
    assert (record.record, record.how, record.replay) == (digest("", "order-1"), "fresh", False)


def test_lines_can_be_json(drive_type, capsys) -> None:
    structlog.configure(processors=[structlog.processors.JSONRenderer()])
    drive_type(LogObserver()).run(lambda ctx: "done", scope='charge "1"', key="order-1")
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["scope"] == 'charge "1"'


def test_a_logger_can_be_given(drive_type) -> None:
    logger = structlog.testing.CapturingLogger()
    drive = drive_type(LogObserver(structlog.wrap_logger(logger, processors=[], wrapper_class=structlog.BoundLogger)))
    drive.run(lambda ctx: "done", scope="charge", key="order-1")
    assert [call.kwargs["how"] for call in logger.calls] == ["fresh"]

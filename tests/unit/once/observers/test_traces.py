"""Spans, taken from the OpenTelemetry SDK's own exporter."""

import asyncio
import logging

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from sameas.identity.ids import parse_traceparent
from sameas.identity.key import record_digest
from sameas.once.errors import BatchFailed, KeyReused, StoredFailure
from sameas.once.observe import CallEnded, CallStarted
from sameas.once.observers.traces import TraceObserver
from sameas.once.policy import Policy
from sameas.once.record import Identity
from sameas.stores.memory import MemoryBackend
from tests.unit.once.observers.drives import AsyncDrive, Clock, SyncDrive, shared_by_two, steal


class Tracing:
    """A provider of its own, and the spans that it was given."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = provider.get_tracer("test")
        self.observer = TraceObserver(self.tracer)

    @property
    def spans(self):
        return self._exporter.get_finished_spans()

    @property
    def calls(self):
        return [span for span in self.spans if span.name == "sameas.call"]


@pytest.fixture
def tracing(caplog):
    made = Tracing()
    with caplog.at_level(logging.WARNING):
        yield made
    assert caplog.text == "", "OpenTelemetry or an observer complained"
    assert not trace.get_current_span().get_span_context().is_valid, "a span is left attached"
    assert not made.observer._open


def digest(key, tenant=""):
    return record_digest(tenant, "charge", key).hex()


def ids(context) -> tuple[int, int]:
    return context.trace_id, context.span_id


def links(span) -> list[tuple[int, int]]:
    return [ids(link.context) for link in span.links]


def test_each_call_is_a_span(drive_type, tracing) -> None:
    drive = drive_type(tracing.observer)
    drive.run(lambda ctx: "done", scope="charge", key="order-1", tenant="acme", payload={"pin": "1234"})
    (span,) = tracing.calls
    assert dict(span.attributes) == {
        "sameas.scope": "charge",
        "sameas.record": digest("order-1", tenant="acme"),
        "sameas.tenant": "acme",
        "sameas.how": "fresh",
        "sameas.replay": False,
        "sameas.attempt": 1,
    }
    assert not span.links
    assert span.status.status_code is StatusCode.UNSET


def test_the_span_is_current_while_the_work_runs_and_no_longer(drive_type, tracing) -> None:
    seen = []

    def work(ctx):
        seen.append(trace.get_current_span().get_span_context())
        with tracing.tracer.start_as_current_span("inside"):
            return "done"

    drive = drive_type(tracing.observer)
    with tracing.tracer.start_as_current_span("outside") as outside:
        drive.run(work, scope="charge", key="order-1")
        assert trace.get_current_span() is outside
    inside, call, around = tracing.spans
    assert ids(seen[0]) == ids(call.context)
    assert inside.parent.span_id == call.context.span_id
    assert call.parent.span_id == around.context.span_id


def test_the_traceparent_is_stored_with_the_record(drive_type, tracing) -> None:
    drive = drive_type(tracing.observer)
    drive.run(lambda ctx: "done", scope="charge", key="order-1", audit={"by": "test"})
    (record,) = drive.backend._records.values()
    (span,) = tracing.calls
    parent = parse_traceparent(record.about.audit["traceparent"])
    assert parent is not None
    trace_id, span_id = parent
    assert (int(trace_id, 16), int(span_id, 16)) == ids(span.context)
    assert record.about.audit["by"] == "test"


def test_a_replay_is_linked_to_the_call_that_did_the_work(drive_type, tracing) -> None:
    drive = drive_type(tracing.observer)
    for _ in range(3):
        drive.run(lambda ctx: "done", scope="charge", key="order-1")
    original, *replays = tracing.calls
    assert [links(span) for span in replays] == [[ids(original.context)]] * 2
    assert [span.attributes["sameas.how"] for span in replays] == ["replay", "replay"]
    assert original.context.trace_id != replays[0].context.trace_id


def test_the_link_holds_between_processes(drive_type, tracing) -> None:
    backend = MemoryBackend()
    drive_type(tracing.observer, backend=backend).run(lambda ctx: "done", scope="charge", key="order-1")
    another = TraceObserver(tracing.tracer)
    drive_type(another, backend=backend).run(lambda ctx: "done", scope="charge", key="order-1")
    original, replay = tracing.calls
    assert links(replay) == [ids(original.context)]
    assert replay.links[0].context.is_remote


def test_those_who_share_are_linked_to_the_one_who_worked(drive_type, tracing) -> None:
    shared_by_two(drive_type(tracing.observer), scope="charge", key="order-1")
    by_how = {span.attributes["sameas.how"]: span for span in tracing.calls}
    assert links(by_how["shared"]) == [ids(by_how["fresh"].context)]
    assert by_how["shared"].attributes["sameas.waited_seconds"] > 0


def test_a_kept_failure_is_linked_to_the_call_that_failed(drive_type, tracing) -> None:
    def work(ctx):
        raise ValueError("declined")

    drive = drive_type(tracing.observer, policy=Policy(keep_errors=(ValueError,)))
    for kind in (ValueError, StoredFailure):
        with pytest.raises(kind):
            drive.run(work, scope="charge", key="order-1")
    original, replay = tracing.calls
    assert links(replay) == [ids(original.context)]
    assert replay.attributes["sameas.replay"] is True


def test_a_traceparent_that_cannot_be_read_is_no_link(drive_type, tracing) -> None:
    backend = MemoryBackend()
    plain = drive_type(backend=backend)
    hostile = ("", "00-zz", "00-" + "0" * 32 + "-" + "1" * 16 + "-01", "00-" + "a" * 32 + "-" + "b" * 16 + "-01\nx: y")
    for number, traceparent in enumerate(hostile):
        plain.run(lambda ctx: "done", scope="charge", key=str(number), audit={"traceparent": traceparent})
    drive = drive_type(tracing.observer, backend=backend)
    with tracing.tracer.start_as_current_span("outside"):
        for number in range(len(hostile)):
            drive.run(lambda ctx: "done", scope="charge", key=str(number))
    assert [links(span) for span in tracing.calls] == [[]] * len(hostile)


def test_a_call_whose_work_was_never_traced_has_no_link(drive_type, tracing) -> None:
    backend = MemoryBackend()
    drive_type(backend=backend).run(lambda ctx: "done", scope="charge", key="order-1")
    drive_type(tracing.observer, backend=backend).run(lambda ctx: "done", scope="charge", key="order-1")
    (span,) = tracing.calls
    assert not span.links


def test_an_error_is_recorded_without_its_message(drive_type, tracing) -> None:
    def work(ctx):
        raise ValueError("card 4111")

    with pytest.raises(ValueError):
        drive_type(tracing.observer).run(work, scope="charge", key="order-1")
    (span,) = tracing.calls
    (event,) = span.events
    assert (event.name, event.attributes["exception.type"]) == ("exception", "ValueError")
    assert "in work" in event.attributes["exception.stacktrace"]
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes["sameas.how"], span.attributes["error.type"]) == ("error", "ValueError")
    # The source line that raises is in the stack, as written; the message that was made from it is not.
    assert "ValueError: card" not in span.to_json()


def test_a_message_made_of_data_is_nowhere_in_the_span(drive_type, tracing) -> None:
    def work(ctx):
        card = str(4000 + 111)
        raise ValueError(f"declined {card}")

    with pytest.raises(ValueError):
        drive_type(tracing.observer).run(work, scope="charge", key="order-1")
    assert "4111" not in tracing.calls[0].to_json()


def test_calls_inside_calls_are_spans_inside_spans(tracing) -> None:
    drive = SyncDrive(tracing.observer)

    def outer(ctx):
        return drive.run(lambda ctx: "done", scope="mail", key="order-1")

    drive.run(outer, scope="charge", key="order-1")
    inner, around = tracing.calls
    assert inner.parent.span_id == around.context.span_id
    assert not inner.links


def test_calls_of_a_batch_have_their_own_spans_also_while_they_overlap(drive_type, tracing) -> None:
    seen = {}

    def work(ctx, payload):
        seen[ctx.key] = ids(trace.get_current_span().get_span_context())
        return payload

    async def overlapping(ctx, payload):
        work(ctx, payload)
        await asyncio.sleep(0)
        assert ids(trace.get_current_span().get_span_context()) == seen[ctx.key]
        return payload

    drive = drive_type(tracing.observer)
    keys = [f"order-{number}" for number in range(5)]
    doing = overlapping if drive_type is AsyncDrive else work
    with tracing.tracer.start_as_current_span("outside") as outside:
        assert drive.run_many(doing, range(5), keys=keys, scope="charge") == list(range(5))
        assert trace.get_current_span() is outside
    by_record = {span.attributes["sameas.record"]: ids(span.context) for span in tracing.calls}
    assert by_record == {digest(key): context for key, context in seen.items()}
    assert {span.parent.span_id for span in tracing.calls} == {outside.get_span_context().span_id}


def test_replays_in_a_batch_are_linked_though_their_claims_came_first(drive_type, tracing) -> None:
    drive = drive_type(tracing.observer)
    for key in ("a", "b"):
        drive.run(lambda ctx: "done", scope="charge", key=key, payload=1)
    drive.run_many(lambda ctx, payload: payload, [1, 1, 1], keys=["a", "c", "b"], scope="charge")
    first, second, *batch = tracing.calls
    found = {span.attributes["sameas.record"]: links(span) for span in batch}
    assert found == {digest("a"): [ids(first.context)], digest("b"): [ids(second.context)], digest("c"): []}


def test_the_same_key_twice_in_a_batch_is_linked_to_its_first(drive_type, tracing) -> None:
    drive = drive_type(tracing.observer)
    drive.run_many(lambda ctx, payload: payload, [1, 1], keys=["a", "a"], scope="charge")
    first, second = tracing.calls
    assert links(second) == [ids(first.context)]


def test_what_a_batch_did_is_linked_from_a_later_replay_here(drive_type, tracing) -> None:
    drive = drive_type(tracing.observer)
    drive.run_many(lambda ctx, payload: payload, [1], keys=["a"], scope="charge")
    drive.run(lambda ctx: 1, scope="charge", key="a", payload=1)
    first, second = tracing.calls
    assert links(second) == [ids(first.context)]


def test_work_done_again_elsewhere_is_not_taken_for_ours(drive_type, tracing) -> None:
    backend = MemoryBackend()
    drive, untraced = drive_type(tracing.observer, backend=backend), drive_type(backend=backend)
    drive.run_many(lambda ctx, payload: payload, [1], keys=["a"], scope="charge")
    untraced.forget("charge", "a")
    untraced.run(lambda ctx: 1, scope="charge", key="a", payload=1)
    drive.run(lambda ctx: 1, scope="charge", key="a", payload=1)
    assert not tracing.calls[-1].links


def test_a_batch_that_fails_in_parts_leaves_nothing_attached(drive_type, tracing) -> None:
    def work(ctx, payload):
        if payload == 1:
            raise ValueError("one")
        return payload

    with pytest.raises(BatchFailed):
        drive_type(tracing.observer).run_many(work, [0, 1, 2], keys=["a", "b", "c"], scope="charge")
    hows = {span.attributes["sameas.record"]: span.attributes["sameas.how"] for span in tracing.calls}
    assert hows == {digest("a"): "fresh", digest("b"): "error", digest("c"): "fresh"}


def test_a_cancelled_call_ends_its_span_and_did_not_fail(tracing) -> None:
    drive = AsyncDrive(tracing.observer)

    async def cancel() -> None:
        working = asyncio.Event()

        async def work(ctx):
            working.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(drive.engine.run(work, scope="charge", key="order-1"))
        await working.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    (span,) = tracing.calls
    assert span.attributes["error.type"] == "asyncio.exceptions.CancelledError"
    assert span.status.status_code is StatusCode.UNSET


def test_a_replaced_worker_is_not_linked_to_itself(drive_type, tracing) -> None:
    clock = Clock()
    drive = drive_type(tracing.observer, backend=MemoryBackend(clock))

    def work(ctx):
        steal(drive.backend, clock, ctx.identity, lease_for=30)
        return "mine"

    assert drive.run(work, scope="charge", key="order-1", lease=30) == "theirs"
    (span,) = tracing.calls
    assert span.attributes["sameas.attempt"] == 2
    assert not span.links


def test_a_claim_that_is_busy_or_refused_is_no_link(drive_type, tracing) -> None:
    drive = drive_type(tracing.observer)
    drive.run(lambda ctx: "done", scope="charge", key="order-1", payload=1)
    with pytest.raises(KeyReused):
        drive.run(lambda ctx: "done", scope="charge", key="order-1", payload=2)
    refused = tracing.calls[-1]
    assert not refused.links
    assert refused.attributes["error.type"] == "sameas.once.errors.KeyReused"


def test_the_end_of_a_call_that_was_never_seen_to_start_is_passed_over(tracing) -> None:
    started = CallStarted(Identity(b"digest", "", "charge", "order-1"), {})
    tracing.observer.on(CallEnded(started, "fresh", 0.1, 0.0, 1))
    assert not tracing.spans


def test_two_observers_on_one_engine_nest(drive_type, tracing) -> None:
    second = TraceObserver(tracing.tracer)
    drive_type(tracing.observer, second).run(lambda ctx: "done", scope="charge", key="order-1")
    assert len(tracing.calls) == 2


def test_without_an_sdk_nothing_is_stored_and_nothing_warns(drive_type) -> None:
    drive = drive_type(TraceObserver(trace.NoOpTracer()))
    for _ in range(2):
        assert drive.run(lambda ctx: "done", scope="charge", key="order-1") == "done"
    (record,) = drive.backend._records.values()
    assert "traceparent" not in record.about.audit


def test_memory_of_keys_is_bounded(tracing) -> None:
    observer = TraceObserver(tracing.tracer, remembered=10)
    drive = SyncDrive(observer)
    for number in range(50):
        drive.run(lambda ctx: "done", scope="charge", key=str(number))
    assert len(observer._originals) == 10
    assert not observer._open

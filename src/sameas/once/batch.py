"""Many calls at once: who leads, who follows, and what came of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

from sameas.identity.canonical import compile_exclusions
from sameas.once.call import Call
from sameas.once.call_builder import CallBuilder, Options
from sameas.once.context import Context
from sameas.once.errors import BatchFailed, ResultNotKept
from sameas.once.record import Acquired, Claim, ProcessingRecord, check_tags

T = TypeVar("T")

# Claims made in one go: enough to hide the round trip, few enough that the last lease is still young at its turn.
WINDOW = 500


class BatchOptions(Options, total=False):
    """What a caller may say about many calls: `keys`, one for each payload, instead of their content."""

    keys: Sequence[str] | None


class AsyncBatchOptions(BatchOptions, total=False):
    """And about many calls in tasks: how many are worked on at once."""

    concurrency: int


class Seat:
    """One call of a batch that leads."""

    __slots__ = ("call", "claim", "number", "started")

    def __init__(self, number: int, call: Call) -> None:
        self.number = number
        self.call = call
        self.claim: Claim | None = None
        self.started = False


class Batch:
    """The calls of one `run_many`, with their results in order."""

    def __init__(
        self,
        intake: CallBuilder,
        work: Callable[[Context, Any], Any],
        payloads: Iterable[Any],
        given: BatchOptions,
    ) -> None:
        self.payloads = list(payloads)
        keys = given.pop("keys", None)
        options = cast(Options, given)
        if keys is not None and len(keys) != len(self.payloads):
            raise ValueError(f"{len(self.payloads)} payloads need as many keys, not {len(keys)}")
        self._call_builder = intake
        self.calls: list[Call] = []
        # Once for all: an iterator would be used up by the first payload.
        options["exclude_fields"] = compile_exclusions(options.get("exclude_fields", ()))
        options["tags"] = check_tags(options.get("tags", ()))
        for number, payload in enumerate(self.payloads):
            each = options.copy()
            each["payload"] = payload
            each["key"] = keys[number] if keys else None
            self.calls.append(intake.call(_on(work, payload), **each))
        self.results: list[Any] = [None] * len(self.calls)

    def windows(self) -> Iterator[tuple[list[Seat], list[int]]]:
        """The calls, a window at a time: those that lead, and the numbers of those that follow somebody."""
        for start in range(0, len(self.calls), WINDOW):
            leading: list[Seat] = []
            following: list[int] = []
            for number in range(start, min(start + WINDOW, len(self.calls))):
                call = self.calls[number]
                call.refuse_reentry()
                if call.join_or_lead() is call.in_flight:
                    call.begin_claim()
                    leading.append(Seat(number, call))
                else:
                    following.append(number)
            yield leading, following

    def claimed(self, seats: Sequence[Seat], claims: Sequence[Claim]) -> Iterator[tuple[Context, Call]]:
        """Note the answers; the leases among them are to be kept alive from now on."""
        for seat, claim in zip(seats, claims, strict=True):
            seat.claim = claim
            seat.call.claiming = isinstance(claim, Acquired)
            if isinstance(claim, Acquired):
                yield seat.call.acquired(claim), seat.call

    def records(self) -> list[ProcessingRecord]:
        """All results, or BatchFailed with all of them."""
        if any(isinstance(result, BaseException) for result in self.results):
            raise BatchFailed(self.results)
        return self.results

    def unfinished(self) -> list[Call]:
        """The calls that an interruption may have left in flight or with a claim."""
        return [call for call, result in zip(self.calls, self.results, strict=True) if result is None]


def answers(records: Sequence[ProcessingRecord[T]]) -> list[T]:
    """The results of many records, or BatchFailed where some were not kept."""
    if any(record.not_kept and record.was_replay for record in records):
        raise BatchFailed(
            [
                ResultNotKept(reason=record.not_kept) if record.not_kept and record.was_replay else record
                for record in records
            ]
        )
    return [record.result for record in records]


def _on(work: Callable[[Context, Any], Any], payload: Any) -> Callable[[Context], Any]:
    return lambda context: work(context, payload)

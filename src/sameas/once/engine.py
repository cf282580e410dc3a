"""The promise, around any function, for threads: `Engine`. `AsyncEngine` is its twin for tasks.

Both drive the same script (`sameas.once.call`); what differs is how a command is performed, how one waits, and how the
caller's function is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import sleep
from typing import Any, ParamSpec, Self, TypeVar, Unpack, cast

from sameas.identity.key import Namespace
from sameas.once.batch import Batch, BatchOptions, answers
from sameas.once.call import Call, observed
from sameas.once.call_builder import CallBuilder, Options, identities_of
from sameas.once.claim_handle import ClaimHandle, until_work, work_done_by_the_holder
from sameas.once.context import WORKING, Context
from sameas.once.decorator import Once, OnceOptions
from sameas.once.errors import TransactionEnded
from sameas.once.forks import renew_after_fork
from sameas.once.heartbeat import Heartbeat
from sameas.once.observe import ObservedBackend, Observer, make_emitter
from sameas.once.policy import Policy
from sameas.once.record import Accepted, ProcessingRecord, Record
from sameas.once.script import Effects, Script, run
from sameas.once.steps import Pause, ThreadListener, Work
from sameas.once.store import Backend, Page, Query, Selection, Store

T = TypeVar("T")
V = TypeVar("V")
P = ParamSpec("P")

NOT_GIVEN_BACK = "sameas could not give the claim back ({}); it ends with its lease"


class Engine:
    """Runs work once per identity, for callers in threads and processes.

    Work has one of four shapes. `run` and `record` call `work(ctx)`, which is told its attempt, fence and child keys.
    `run_many` and `record_many` call `work(ctx, payload)` for each payload. `once` decorates a function or method of
    any arguments, which are its identity. `IdempotentProcessor` wraps a function of one payload. The last two find
    their context with `current_context()`.

    policy: how every scope behaves that `policies` does not name; `policies`: by the name of the scope.
    secret: keys fingerprints, so that a reader of the store cannot guess payloads from them.
    observers: are told what happens; see `sameas.once.observers`.
    """

    def __init__(
        self,
        store: Store,
        *,
        policy: Policy | None = None,
        policies: Mapping[str, Policy] | None = None,
        secret: bytes = b"",
        observers: Sequence[Observer] = (),
    ) -> None:
        self.secret = secret
        self.policy = policy or Policy()
        self.policies = dict(policies or {})
        self._emit = make_emitter(observers)
        backend = store.backend
        self._backend: Backend = backend if self._emit is None else ObservedBackend(backend, self._emit)
        self.store = Store(self._backend)
        self._heartbeat = Heartbeat(self._backend)
        self._call_builder = CallBuilder(
            self._backend,
            policy=self.policy,
            policies=self.policies,
            secret=secret,
            new_listener=ThreadListener,
            emit=self._emit,
        )
        self._effects: Effects = {Work: self._work, Pause: _sleep}
        renew_after_fork(self)

    def run(self, work: Callable[[Context], T], *, connection: Any = None, **options: Unpack[Options]) -> T:
        """The result of `work(ctx)`: run now, or as it was the first time.

        Who is the same:
            scope: the name of this kind of work, such as "charge". It has no default.
            key: the caller's name for this piece of work. Without one, the content of `payload` is the key.
            payload: what the work is about. With a key it is compared: for another payload, KeyReused is raised.
            tenant: whose work it is; no tenant is given another's result. "" by default.
            exclude_fields: fields of the payload that do not count, such as {"sent_at"}.
            namespace: "client" for keys that callers choose (the default), "content" for computed ones.
            request_fingerprint: instead of a payload, what is compared.
            former_key: with a key computed from content, a function that gives the key of before types had tags.
        How it goes:
            lease: seconds after which a worker that says nothing is replaced. The policy's: 30.
            retention: seconds for which the result is kept, None until it is forgotten. The policy's: 24 hours.
            on_busy: "wait" for another who is at it, or "refuse" with InProgress. The policy's: "wait".
            wait_for: seconds to wait for others, in all. The policy's: 60.
            connection: a connection or session of the caller's own: the record is written in its transaction, and
                commits or vanishes with it.
        What is kept:
            result_type: the type of the result, if it is none of Python's own: an Enum, dataclass, pydantic model,
                msgspec struct or a container of them.
            codec: instead of a type, an object that turns results into bytes and back.
            tags: words to find or forget the record by.
            route, method: where the work came in, for listings.
            audit: anything JSON can hold, kept with the record.

        Raises what the work raises, and: InProgress (refused, or waited in vain), KeyReused, StoredFailure (it failed
        before in a way that the policy keeps), StoreUnavailable (nothing was run), OutcomeUnknown (done, and not
        stored; it has the result), ResultNotKept (done before, its result could not be kept), ResultDoesNotFit,
        Superseded (this worker was replaced), Reentered, NestedInTransaction, RecordDamaged, NotCanonical (the payload
        has no certain form); with `connection`, TransactionRefused and TransactionEnded. An option that cannot be is a
        TypeError or ValueError. All others are SameasErrors.
        """
        if connection is not None:
            return cast(T, self._join(work, connection, options).answer())
        return cast(T, self._drive(self._call_builder.call(work, **options)).answer())

    def answer(self, work: Callable[[Context], T], options: Options) -> T:
        """`run`, for one who has the options in hand."""
        return cast(T, self._drive(self._call_builder.call(work, **options)).answer())

    def record(
        self, work: Callable[[Context], T], *, connection: Any = None, **options: Unpack[Options]
    ) -> ProcessingRecord[T]:
        """`run`, with where the result came from: `was_replay`, attempt, times.

        Options and errors are those of `run`, save that a result that was not kept is no error: `not_kept` says why.
        """
        if connection is not None:
            return self._join(work, connection, options)
        return self._drive(self._call_builder.call(work, **options))

    def begin(
        self, *, audit_of: Callable[[], Mapping[str, Any]] | None = None, **options: Unpack[Options]
    ) -> ProcessingRecord | ClaimHandle:
        """The record of what is kept, or the claim to work that the caller then does and ends itself.

        Whoever gets a claim must end it, with `finish(result)` or `give_back(error)`: until then its lease is renewed.
        Options and errors are those of `run`, without `connection`. `audit_of` is asked for what `audit` would say
        where the answer is not at hand already.
        """
        call = self._call_builder.call(work_done_by_the_holder, **options)
        if self._backend.recalls and (known := call.recalled()) is not None:
            return known
        if audit_of is not None:
            call.note(audit_of())
        script = call.script()
        if self._emit is not None:
            script = observed(script, call, self._emit)
        try:
            begun = run(until_work(script), self._backend.perform, self._effects)
        except BaseException as interruption:
            self._abandon_all([call], interruption)
            raise
        if type(begun) is not Work:
            return cast(ProcessingRecord, begun)
        self._heartbeat.add(begun.context, begun.policy)
        return ClaimHandle(self, call, script, begun.context)

    def end_held(
        self, context: Context, call: Call, rest: Script[ProcessingRecord], said: Any = None
    ) -> ProcessingRecord:
        """The rest of a call that `begin` gave out; `said` is the result of its work."""
        context.ended = True
        self._heartbeat.remove(context)
        try:
            return run(rest, call.backend.perform, self._effects, said)
        except BaseException as interruption:
            self._abandon_all([call], interruption)
            raise

    def run_many(
        self, work: Callable[[Context, V], T], payloads: Iterable[V], **options: Unpack[BatchOptions]
    ) -> list[T]:
        """The results of `work(ctx, payload)` for many payloads, in order, the claims made in one go.

        keys: one for each payload, instead of their content. Other options are those of `run`, without `key`,
        `payload` and `connection`. One that fails does not end the others.

        Raises BatchFailed if any failed: its `results` has a record or an error for each. ValueError if there are not
        as many keys as payloads.
        """
        return answers(self.record_many(work, payloads, **options))

    def record_many(
        self, work: Callable[[Context, V], T], payloads: Iterable[V], **options: Unpack[BatchOptions]
    ) -> list[ProcessingRecord[T]]:
        """`run_many`, with where the results came from. Raises BatchFailed, with all of them, if some failed."""
        batch = Batch(self._call_builder, work, payloads, options)
        try:
            for leading, following in batch.windows():
                claims = self.store.claim_many([seat.call.request for seat in leading])
                for context, call in batch.claimed(leading, claims):
                    self._heartbeat.add(context, call.policy)
                for seat in leading:
                    self._keep(batch, seat.number, seat.call.lead(seat.claim))
                for number in following:
                    self._keep(batch, number, batch.calls[number].script())
        except BaseException as interruption:
            self._abandon_all(batch.unfinished(), interruption)
            raise
        return batch.records()

    def once(self, **options: Unpack[OnceOptions]) -> Callable[[Callable[P, T]], Once[P, T]]:
        """Decorate a function or method: equal arguments, one run.

        The identity is the scope and the arguments: the one argument of a function that takes one, else all of them by
        name, defaults included.

            scope: the function's module and name, if it has one that lasts.
            key: a function of the arguments that gives the key; methods need one, for `self` is not in the identity.
            tenant: a name, or a function of the arguments that gives it.
            exclude_fields, lease, retention, on_busy, wait_for, result_type, tags, audit: as for `run`. Without
                `result_type`, the annotation of the result is used.

        The decorated function has `.record(...)` too. Raises TypeError for a method without `key`, and if an async
        function is given to `Engine`; ValueError for a function whose name does not last and has no `scope`. Calls
        raise what `run` raises.
        """
        return lambda function: Once(self, function, options)

    def read(self, scope: str, key: str, *, tenant: str = "", namespace: Namespace | None = None) -> Record | None:
        """The live record of a key, chosen by a caller or computed from content, whatever its state; else None. Raises
        StoreUnavailable and RecordDamaged."""
        for identity in identities_of(scope, key, tenant=tenant, namespace=namespace):
            record = self.store.read(identity)
            if record is not None:
                return record
        return None

    def forget(self, scope: str, key: str, *, tenant: str = "", namespace: Namespace | None = None) -> bool:
        """Forget the record of a key; its holder, if any, is fenced. False if there was none.

        Raises StoreUnavailable.
        """
        answers = [
            self.store.forget(identity) for identity in identities_of(scope, key, tenant=tenant, namespace=namespace)
        ]
        return any(isinstance(answer, Accepted) for answer in answers)

    def forget_where(self, *, tenant: str | None = None, scope: str | None = None, tag: str | None = None) -> int:
        """Forget every record that fits; returns how many went. Raises StoreUnavailable."""
        return self.store.forget_where(Selection(tenant=tenant, scope=scope, tag=tag))

    def find(self, query: Query) -> Page:
        """A page of records, newest first. Raises StoreUnavailable."""
        return self.store.find(query)

    def prune(self, *, batch: int = 1_000) -> int:
        """Delete what has expired, batch by batch; returns how many went. Raises StoreUnavailable."""
        total = 0
        while gone := self.store.prune(batch):
            total += gone
        return total

    def close(self) -> None:
        """Close the store. Calls after that raise StoreClosed."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def after_fork(self) -> None:
        self._call_builder.after_fork()
        self._heartbeat.after_fork()

    def _join(self, work: Callable[[Context], Any], connection: Any, options: Options) -> ProcessingRecord:
        call = self._call_builder.call(work, **options)
        try:
            with self._backend.join(connection) as call.backend:
                return self._drive(call, call.in_transaction())
        except TransactionEnded as ended:
            if call.context is not None and call.outcome is not None:
                # What the work committed has happened, and its claim with it: it must not happen again.
                lease, outcome = call.context.lease, call.outcome
                try:
                    run(self._backend.complete(lease, outcome, call.policy.retention_micros), self._backend.perform)
                except Exception as trouble:
                    ended.add_note(NOT_GIVEN_BACK.format(trouble))
            raise

    def _drive(self, call: Call, script: Script[ProcessingRecord] | None = None) -> ProcessingRecord:
        """A call to its end, by its whole script if none is given."""
        if script is None:
            if self._backend.recalls and (known := call.recalled()) is not None:
                return known
            script = call.script()
        if self._emit is not None:
            script = observed(script, call, self._emit)
        try:
            return run(script, call.backend.perform, self._effects)
        except BaseException as interruption:
            self._abandon_all([call], interruption)
            raise

    def _work(self, command: Work) -> Any:
        context, working = command.context, WORKING.get()
        # Everything that is undone below is done inside: a signal may strike between any two lines.
        try:
            if command.leased:
                self._heartbeat.add(context, command.policy)
            WORKING.set((*working, context))
            return command.function(context)
        finally:
            context.ended = True
            WORKING.set(working)
            self._heartbeat.remove(context)

    def _keep(
        self,
        batch: Batch,
        number: int,
        script: Script[ProcessingRecord],
    ) -> None:
        """One call of a batch: its failure is its own."""
        try:
            batch.results[number] = self._drive(batch.calls[number], script)
        except Exception as error:
            batch.results[number] = error

    def _abandon_all(self, calls: Sequence[Call], interruption: BaseException) -> None:
        """Leave nothing behind: first what is in this process, then, one by one, what is in the store."""
        for call in calls:
            call.finish()
            if call.context is not None:
                self._heartbeat.remove(call.context)
        for call in calls:
            if call.must_abandon(interruption):
                try:
                    run(call.abandon(), call.backend.perform)
                except Exception as trouble:
                    interruption.add_note(NOT_GIVEN_BACK.format(trouble))


def _sleep(pause: Pause) -> None:
    if isinstance(pause.listener, ThreadListener):
        pause.listener.wait(pause.seconds)
    else:
        sleep(pause.seconds)

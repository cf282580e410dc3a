"""The promise, around any function, for threads: `Engine`. `AsyncEngine` is its twin for tasks.

Both drive the same script (`sameas.once.call`); what differs is how a command is performed, how one waits, and how the
caller's function is called.

Most calls need little of it and begin the quick way (`_answer`). An answer that is at hand in this process is given at
once; else, where nobody in this process is at the key, the claim is sent before anything else is made, and a replay
ends the call there. Whatever else the claim says, and every call that follows or is observed, is the script's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import sleep
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, Unpack, cast

from sameas.identity.key import Namespace
from sameas.once.batch import Batch
from sameas.once.call import Call, observed
from sameas.once.context import WORKING, Context
from sameas.once.decorator import Once, OnceOptions
from sameas.once.forks import renew_after_fork
from sameas.once.heartbeat import Heartbeat
from sameas.once.held import Held, elsewhere, until_work
from sameas.once.intake import Intake, Options, identities_of
from sameas.once.listener import ThreadListener
from sameas.once.observe import ObservedBackend, Observer, telling
from sameas.once.policy import Policy
from sameas.once.processing_record import ProcessingRecord
from sameas.once.record import Accepted, Acquired, Claim, Record, Replay
from sameas.once.script import Effects, Script, run
from sameas.once.steps import Pause, Work
from sameas.once.store import Backend, Page, Query, Selection, Store

T = TypeVar("T")
P = ParamSpec("P")

NOT_GIVEN_BACK = "sameas could not give the claim back ({}); it ends with its lease"


class Engine:
    """Runs work once per identity, for callers in threads and processes."""

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
        self._tell = telling(observers)
        backend = store.backend
        self._backend: Backend = backend if self._tell is None else ObservedBackend(backend, self._tell)
        self.store = Store(self._backend)
        self._heartbeat = Heartbeat(self._backend)
        self._intake = Intake(
            self._backend,
            policy=policy or Policy(),
            policies=policies or {},
            secret=secret,
            new_listener=ThreadListener,
            tell=self._tell,
        )
        self._effects: Effects = {Work: self._work, Pause: _sleep}
        renew_after_fork(self)

    def run(self, work: Callable[[Context], T], *, connection: Any = None, **options: Unpack[Options]) -> T:
        """The result of `work(ctx)`: run now, or as it was the first time."""
        if connection is not None:
            return cast(T, self._join(work, connection, options).result)
        return self._answer(self._intake.call(work, **options)).result  # type: ignore[no-any-return]

    def record(
        self, work: Callable[[Context], Any], *, connection: Any = None, **options: Unpack[Options]
    ) -> ProcessingRecord:
        """`run`, with where the result came from. `connection` joins the caller's transaction."""
        if connection is not None:
            return self._join(work, connection, options)
        return self._answer(self._intake.call(work, **options))

    def begin(self, **options: Unpack[Options]) -> ProcessingRecord | Held:
        """The record of what is kept, or the claim to work that the caller then does and ends itself."""
        call = self._intake.call(elsewhere, **options)
        backend = self._backend
        claim: Claim | None = None
        try:
            if self._tell is not None:
                script = observed(call.script(), call, self._tell)
            elif backend.recalls and (known := call.recalled()) is not None:
                return known
            elif not call.takes_off():
                script = call.script()
            else:
                claim = run(backend.claim(call.request), backend.perform)
                if type(claim) is Replay:
                    return call.lands(claim)
                script = call.goes_on(claim)
            # What is ours goes straight to the work.
            begun = next(script) if type(claim) is Acquired else run(until_work(script), backend.perform, self._effects)
        except BaseException as interruption:
            self._abandon_all([call], interruption)
            raise
        if type(begun) is not Work:
            return cast(ProcessingRecord, begun)
        self._heartbeat.add(begun.context, begun.policy)
        return Held(self, call, script, begun.context)

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
        self,
        work: Callable[[Context, Any], T],
        payloads: Iterable[Any],
        *,
        keys: Sequence[str] | None = None,
        **options: Unpack[Options],
    ) -> list[T]:
        """The results of `work(ctx, payload)` for many payloads, in order, the claims made in one go."""
        return [cast(T, record.result) for record in self.record_many(work, payloads, keys=keys, **options)]

    def record_many(
        self,
        work: Callable[[Context, Any], Any],
        payloads: Iterable[Any],
        *,
        keys: Sequence[str] | None = None,
        **options: Unpack[Options],
    ) -> list[ProcessingRecord]:
        """`run_many`, with where the results came from. Raises BatchFailed, with all of them, where some failed."""
        batch = Batch(self._intake, work, payloads, keys, options)
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
        """Decorate a function: equal arguments, one run."""
        return lambda function: Once(self, function, options)

    def read(self, scope: str, key: str, *, tenant: str = "", namespace: Namespace | None = None) -> Record | None:
        """The live record of a key, one that a caller chose or one computed from content, whatever its state."""
        for identity in identities_of(scope, key, tenant=tenant, namespace=namespace):
            record = self.store.read(identity)
            if record is not None:
                return record
        return None

    def forget(self, scope: str, key: str, *, tenant: str = "", namespace: Namespace | None = None) -> bool:
        """Forget the record of a key; its holder, if any, is fenced. False where there was none."""
        answers = [
            self.store.forget(identity) for identity in identities_of(scope, key, tenant=tenant, namespace=namespace)
        ]
        return any(isinstance(answer, Accepted) for answer in answers)

    def forget_where(self, *, tenant: str | None = None, scope: str | None = None, tag: str | None = None) -> int:
        """Forget every record that fits; returns how many went."""
        return self.store.forget_where(Selection(tenant=tenant, scope=scope, tag=tag))

    def find(self, query: Query) -> Page:
        """A page of live records, newest first."""
        return self.store.find(query)

    def prune(self, *, batch: int = 1_000) -> int:
        """Delete what has expired, batch by batch; returns how many went."""
        total = 0
        while gone := self.store.prune(batch):
            total += gone
        return total

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def after_fork(self) -> None:
        self._intake.after_fork()
        self._heartbeat.after_fork()

    def _join(self, work: Callable[[Context], Any], connection: Any, options: Options) -> ProcessingRecord:
        with self._backend.join(connection) as joined:
            call = self._intake.call(work, backend=joined, **options)
            return self._drive(call, call.in_transaction())

    def _answer(self, call: Call) -> ProcessingRecord:
        """The quick way, and the script of the call for whatever it does not end."""
        if self._tell is not None:
            return self._drive(call, call.script())
        backend = self._backend
        try:
            if backend.recalls and (known := call.recalled()) is not None:
                return known
            if not call.takes_off():
                return run(call.script(), backend.perform, self._effects)
            claim = run(backend.claim(call.request), backend.perform)
            if type(claim) is Replay:
                return call.lands(claim)
            return run(call.goes_on(claim), backend.perform, self._effects)
        except BaseException as interruption:
            self._abandon_all([call], interruption)
            raise

    def _drive(self, call: Call, script: Script[ProcessingRecord]) -> ProcessingRecord:
        if self._tell is not None:
            script = observed(script, call, self._tell)
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
            call.land()
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

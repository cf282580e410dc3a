"""The promise, around any function, for tasks: `AsyncEngine`. See `sameas.once.engine` for how a call goes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from inspect import isawaitable
from types import CoroutineType
from typing import Any, ParamSpec, Self, TypeVar, Unpack, cast, overload

from sameas.identity.key import Namespace
from sameas.once.batch import AsyncBatchOptions, Batch, answers
from sameas.once.call import Call, observed
from sameas.once.call_builder import CallBuilder, Options, identities_of
from sameas.once.claim_handle import AsyncClaimHandle, until_work, work_done_by_the_holder
from sameas.once.context import WORKING, Context
from sameas.once.decorator import AsyncOnce, OnceOptions
from sameas.once.engine import NOT_GIVEN_BACK, Engine
from sameas.once.errors import TransactionEnded
from sameas.once.forks import renew_after_fork
from sameas.once.heartbeat import AsyncHeartbeat
from sameas.once.observe import ObservedBackend, Observer, make_emitter
from sameas.once.policy import Policy
from sameas.once.record import Accepted, ProcessingRecord, Record
from sameas.once.script import Effects, Script, arun
from sameas.once.steps import Pause, TaskListener, Work
from sameas.once.store import AsyncStore, Backend, Page, Query, Selection

T = TypeVar("T")
V = TypeVar("V")
P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])


def _documented_by(twin: Callable[..., Any]) -> Callable[[F], F]:
    """Have `help()` say the same of both engines."""

    def document(method: F) -> F:
        method.__doc__ = twin.__doc__
        return method

    return document


class AsyncEngine:
    """Runs work once per identity, for callers in tasks. Constructor and methods are those of `Engine`, to be awaited;
    work may be async or not."""

    def __init__(
        self,
        store: AsyncStore,
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
        self.store = AsyncStore(self._backend)
        self._heartbeat = AsyncHeartbeat(self._backend)
        self._call_builder = CallBuilder(
            self._backend,
            policy=self.policy,
            policies=self.policies,
            secret=secret,
            new_listener=TaskListener,
            emit=self._emit,
        )
        self._effects: Effects = {Work: self._work, Pause: _wait}
        renew_after_fork(self)

    # Of work that is async, T is what it gives when it is awaited.
    @overload
    async def run(
        self, work: Callable[[Context], Awaitable[T]], *, connection: Any = None, **options: Unpack[Options]
    ) -> T: ...
    @overload
    async def run(self, work: Callable[[Context], T], *, connection: Any = None, **options: Unpack[Options]) -> T: ...
    @_documented_by(Engine.run)
    async def run(self, work: Callable[[Context], Any], *, connection: Any = None, **options: Unpack[Options]) -> Any:
        """`Engine.run`, to be awaited; the work may be async or not."""
        if connection is not None:
            return (await self._join(work, connection, options)).answer()
        return (await self._drive(self._call_builder.call(work, **options))).answer()

    async def answer(self, work: Callable[[Context], Awaitable[T]], options: Options) -> T:
        """`run`, for one who has the options in hand."""
        return cast(T, (await self._drive(self._call_builder.call(work, **options))).answer())

    @overload
    async def record(
        self, work: Callable[[Context], Awaitable[T]], *, connection: Any = None, **options: Unpack[Options]
    ) -> ProcessingRecord[T]: ...
    @overload
    async def record(
        self, work: Callable[[Context], T], *, connection: Any = None, **options: Unpack[Options]
    ) -> ProcessingRecord[T]: ...
    @_documented_by(Engine.record)
    async def record(
        self, work: Callable[[Context], Any], *, connection: Any = None, **options: Unpack[Options]
    ) -> ProcessingRecord:
        """`Engine.record`, to be awaited."""
        if connection is not None:
            return await self._join(work, connection, options)
        return await self._drive(self._call_builder.call(work, **options))

    @_documented_by(Engine.begin)
    async def begin(
        self, *, audit_of: Callable[[], Mapping[str, Any]] | None = None, **options: Unpack[Options]
    ) -> ProcessingRecord | AsyncClaimHandle:
        """`Engine.begin`, to be awaited."""
        call = self._call_builder.call(work_done_by_the_holder, **options)
        if self._backend.recalls and (known := call.recalled()) is not None:
            return known
        if audit_of is not None:
            call.note(audit_of())
        script = call.script()
        if self._emit is not None:
            script = observed(script, call, self._emit)
        try:
            begun = await arun(until_work(script), self._backend.aperform, self._effects)
        except BaseException as interruption:
            await self._abandon_all([call], interruption)
            raise
        if type(begun) is not Work:
            return cast(ProcessingRecord, begun)
        self._heartbeat.add(begun.context, begun.policy)
        return AsyncClaimHandle(self, call, script, begun.context)

    async def end_held(
        self, context: Context, call: Call, rest: Script[ProcessingRecord], said: Any = None
    ) -> ProcessingRecord:
        """The rest of a call that `begin` gave out; `said` is the result of its work."""
        context.ended = True
        self._heartbeat.remove(context)
        try:
            return await arun(rest, call.backend.aperform, self._effects, said)
        except BaseException as interruption:
            await self._abandon_all([call], interruption)
            raise

    @overload
    async def run_many(
        self, work: Callable[[Context, V], Awaitable[T]], payloads: Iterable[V], **options: Unpack[AsyncBatchOptions]
    ) -> list[T]: ...
    @overload
    async def run_many(
        self, work: Callable[[Context, V], T], payloads: Iterable[V], **options: Unpack[AsyncBatchOptions]
    ) -> list[T]: ...
    async def run_many(
        self, work: Callable[[Context, Any], Any], payloads: Iterable[Any], **options: Unpack[AsyncBatchOptions]
    ) -> list[Any]:
        """The results of `work(ctx, payload)` for many payloads, in order, the claims made in one go.

        concurrency: how many are worked on at once, 16 by default. All else is as for `Engine.run_many`: one that fails
        does not end the others, and BatchFailed is raised in the end, with a record or an error for each.
        """
        return answers(await self.record_many(work, payloads, **options))

    @overload
    async def record_many(
        self, work: Callable[[Context, V], Awaitable[T]], payloads: Iterable[V], **options: Unpack[AsyncBatchOptions]
    ) -> list[ProcessingRecord[T]]: ...
    @overload
    async def record_many(
        self, work: Callable[[Context, V], T], payloads: Iterable[V], **options: Unpack[AsyncBatchOptions]
    ) -> list[ProcessingRecord[T]]: ...
    @_documented_by(Engine.record_many)
    async def record_many(
        self, work: Callable[[Context, Any], Any], payloads: Iterable[Any], **options: Unpack[AsyncBatchOptions]
    ) -> list[ProcessingRecord]:
        """`run_many`, with where the results came from."""
        slots = asyncio.Semaphore(options.pop("concurrency", 16))
        batch = Batch(self._call_builder, work, payloads, options)
        try:
            for leading, following in batch.windows():
                claims = await self.store.claim_many([seat.call.request for seat in leading])
                for context, call in batch.claimed(leading, claims):
                    self._heartbeat.add(context, call.policy)
                async with asyncio.TaskGroup() as tasks:
                    for seat in leading:
                        tasks.create_task(self._keep(batch, seat.number, seat.call.lead(seat.claim), slots))
                async with asyncio.TaskGroup() as tasks:
                    for number in following:
                        tasks.create_task(self._keep(batch, number, batch.calls[number].script(), slots))
        except BaseException as interruption:
            await self._abandon_all(batch.unfinished(), interruption)
            raise
        return batch.records()

    @_documented_by(Engine.once)
    def once(self, **options: Unpack[OnceOptions]) -> Callable[[Callable[P, Awaitable[T]]], AsyncOnce[P, T]]:
        """Decorate an async function: equal arguments, one run."""
        return lambda function: AsyncOnce(self, function, options)

    @_documented_by(Engine.read)
    async def read(
        self, scope: str, key: str, *, tenant: str = "", namespace: Namespace | None = None
    ) -> Record | None:
        """The live record of a key, one that a caller chose or one computed from content, whatever its state."""
        for identity in identities_of(scope, key, tenant=tenant, namespace=namespace):
            record = await self.store.read(identity)
            if record is not None:
                return record
        return None

    @_documented_by(Engine.forget)
    async def forget(self, scope: str, key: str, *, tenant: str = "", namespace: Namespace | None = None) -> bool:
        """Forget the record of a key; its holder, if any, is fenced. False if there was none."""
        answers = [
            await self.store.forget(identity)
            for identity in identities_of(scope, key, tenant=tenant, namespace=namespace)
        ]
        return any(isinstance(answer, Accepted) for answer in answers)

    @_documented_by(Engine.forget_where)
    async def forget_where(self, *, tenant: str | None = None, scope: str | None = None, tag: str | None = None) -> int:
        """Forget every record that fits; returns how many went."""
        return await self.store.forget_where(Selection(tenant=tenant, scope=scope, tag=tag))

    @_documented_by(Engine.find)
    async def find(self, query: Query) -> Page:
        """A page of live records, newest first."""
        return await self.store.find(query)

    @_documented_by(Engine.prune)
    async def prune(self, *, batch: int = 1_000) -> int:
        """Delete what has expired, batch by batch; returns how many went."""
        total = 0
        while gone := await self.store.prune(batch):
            total += gone
        return total

    @_documented_by(Engine.close)
    async def close(self) -> None:
        """Close the store."""
        await self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def after_fork(self) -> None:
        self._call_builder.after_fork()
        self._heartbeat.after_fork()

    async def _join(self, work: Callable[[Context], Any], connection: Any, options: Options) -> ProcessingRecord:
        call = self._call_builder.call(work, **options)
        try:
            async with self._backend.ajoin(connection) as call.backend:
                return await self._drive(call, call.in_transaction())
        except TransactionEnded as ended:
            if call.context is not None and call.outcome is not None:
                lease, outcome = call.context.lease, call.outcome
                backend = self._backend
                try:
                    await arun(backend.complete(lease, outcome, call.policy.retention_micros), backend.aperform)
                except Exception as trouble:
                    ended.add_note(NOT_GIVEN_BACK.format(trouble))
            raise

    async def _drive(self, call: Call, script: Script[ProcessingRecord] | None = None) -> ProcessingRecord:
        """A call to its end, by its whole script if none is given."""
        if script is None:
            if self._backend.recalls and (known := call.recalled()) is not None:
                return known
            script = call.script()
        if self._emit is not None:
            script = observed(script, call, self._emit)
        try:
            return await arun(script, call.backend.aperform, self._effects)
        except BaseException as interruption:
            await self._abandon_all([call], interruption)
            raise

    async def _work(self, command: Work) -> Any:
        context, working = command.context, WORKING.get()
        # Everything that is undone below is done inside: a signal may strike between any two lines.
        try:
            if command.leased:
                self._heartbeat.add(context, command.policy)
            WORKING.set((*working, context))
            result = command.function(context)
            return await result if type(result) is CoroutineType or isawaitable(result) else result
        finally:
            context.ended = True
            WORKING.set(working)
            self._heartbeat.remove(context)

    async def _keep(
        self,
        batch: Batch,
        number: int,
        script: Script[ProcessingRecord],
        slots: asyncio.Semaphore,
    ) -> None:
        """One call of a batch: its failure is its own."""
        async with slots:
            try:
                batch.results[number] = await self._drive(batch.calls[number], script)
            except Exception as error:
                batch.results[number] = error

    async def _abandon_all(self, calls: Sequence[Call], interruption: BaseException) -> None:
        """Leave nothing behind: first what is in this process, then, one by one, what is in the store."""
        for call in calls:
            call.finish()
            if call.context is not None:
                self._heartbeat.remove(call.context)
        left = [call for call in calls if call.must_abandon(interruption)]
        if not left:
            return
        # This goes on to its end, however often it is cancelled.
        giving_back = asyncio.ensure_future(self._give_back(left, interruption))
        while not giving_back.done():
            try:
                await asyncio.shield(giving_back)
            except asyncio.CancelledError:
                continue

    async def _give_back(self, calls: Sequence[Call], interruption: BaseException) -> None:
        for call in calls:
            try:
                await arun(call.abandon(), call.backend.aperform)
            except Exception as trouble:
                interruption.add_note(NOT_GIVEN_BACK.format(trouble))


async def _wait(pause: Pause) -> None:
    if isinstance(pause.listener, TaskListener):
        await pause.listener.wait(pause.seconds)
    else:
        await asyncio.sleep(pause.seconds)

"""Queue-consumer style: wrap any function, hand it payloads, and a redelivery does nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic

from sameas.identity.canonical import compile_exclusions
from sameas.once.async_engine import AsyncEngine
from sameas.once.call_builder import Options
from sameas.once.codec import declared_result
from sameas.once.context import Context
from sameas.once.decorator import scope_of
from sameas.once.engine import Engine
from sameas.once.observe import Observer
from sameas.once.policy import Policy
from sameas.once.record import ProcessingRecord
from sameas.once.steps import refuse_async
from sameas.once.store import AsyncStore, Store

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Any)
    V = TypeVar("V", default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")
    V = TypeVar("V")


def _options_of(
    function: Callable[..., Any], scope: str | None, tenant: str, exclude_fields: Iterable[str], result_type: Any
) -> Options:
    return {
        "scope": scope or scope_of(function),
        "tenant": tenant,
        "exclude_fields": compile_exclusions(exclude_fields),
        "result_type": result_type or declared_result(function),
    }


class IdempotentProcessor(Generic[V, T]):
    """Processes each payload once, by its content less the excluded fields; the scope is the function's name."""

    def __init__(
        self,
        function: Callable[[V], T],
        *,
        store: Store,
        scope: str | None = None,
        exclude_fields: Iterable[str] = (),
        tenant: str = "",
        policy: Policy | None = None,
        result_type: Any = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        refuse_async(function, "use AsyncIdempotentProcessor")
        self._function = function
        self.engine = Engine(store, policy=policy, observers=observers)
        self._options = _options_of(function, scope, tenant, exclude_fields, result_type)

    def process(self, payload: V) -> ProcessingRecord[T]:
        """The result, run now or as it was the first time; `was_replay` tells which.

        Raises what `Engine.record` raises.
        """
        function = self._function

        def work(context: Context) -> T:
            return function(payload)

        options = self._options.copy()
        options["payload"] = payload
        return self.engine.record(work, **options)

    def process_many(self, payloads: Iterable[V]) -> list[ProcessingRecord[T]]:
        """Many payloads, the claims made in one go. Raises BatchFailed, with every record or error, if some failed."""
        function = self._function

        def work(context: Context, payload: V) -> T:
            return function(payload)

        return self.engine.record_many(work, payloads, **self._options)


class AsyncIdempotentProcessor(Generic[V, T]):
    """`IdempotentProcessor`, for async functions."""

    def __init__(
        self,
        function: Callable[[V], Awaitable[T]],
        *,
        store: AsyncStore,
        scope: str | None = None,
        exclude_fields: Iterable[str] = (),
        tenant: str = "",
        policy: Policy | None = None,
        result_type: Any = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._function = function
        self.engine = AsyncEngine(store, policy=policy, observers=observers)
        self._options = _options_of(function, scope, tenant, exclude_fields, result_type)

    async def process(self, payload: V) -> ProcessingRecord[T]:
        """The result, run now or as it was the first time; `was_replay` tells which.

        Raises what `AsyncEngine.record` raises.
        """
        function = self._function

        def work(context: Context) -> Awaitable[T]:
            return function(payload)

        options = self._options.copy()
        options["payload"] = payload
        return await self.engine.record(work, **options)

    async def process_many(self, payloads: Iterable[V]) -> list[ProcessingRecord[T]]:
        """Many payloads, the claims made in one go. Raises BatchFailed, with every record or error, if some failed."""
        function = self._function

        def work(context: Context, payload: V) -> Awaitable[T]:
            return function(payload)

        return await self.engine.record_many(work, payloads, **self._options)

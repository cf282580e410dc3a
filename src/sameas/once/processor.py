"""Queue-consumer style: wrap any function, hand it payloads, and a redelivery does nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from sameas.identity.canonical import compile_exclusions
from sameas.once.async_engine import AsyncEngine
from sameas.once.codec import declared_result
from sameas.once.context import Context
from sameas.once.decorator import scope_of
from sameas.once.engine import Engine
from sameas.once.intake import Options
from sameas.once.policy import Policy
from sameas.once.processing_record import ProcessingRecord
from sameas.once.store import AsyncStore, Store


class IdempotentProcessor:
    """Processes each payload once, by its content less the excluded fields; the scope is the function's name."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        store: Store,
        scope: str | None = None,
        exclude_fields: Iterable[str] = (),
        tenant: str = "",
        policy: Policy | None = None,
        result_type: Any = None,
    ) -> None:
        self._function = function
        self.engine = Engine(store, policy=policy)
        self._options: Options = {
            "scope": scope or scope_of(function),
            "tenant": tenant,
            "exclude_fields": compile_exclusions(exclude_fields),
            "result_type": result_type or declared_result(function),
        }

    def process(self, payload: Any) -> ProcessingRecord:
        """The result, run now or as it was the first time; `was_replay` tells which."""
        function = self._function

        def work(context: Context) -> Any:
            return function(payload)

        options = self._options.copy()
        options["payload"] = payload
        return self.engine.record(work, **options)

    def process_many(self, payloads: Iterable[Any]) -> list[ProcessingRecord]:
        """Many payloads, the claims made in one go."""
        function = self._function
        return self.engine.record_many(lambda context, payload: function(payload), payloads, **self._options)


class AsyncIdempotentProcessor:
    """`IdempotentProcessor`, for async functions."""

    def __init__(
        self,
        function: Callable[[Any], Awaitable[Any]],
        *,
        store: AsyncStore,
        scope: str | None = None,
        exclude_fields: Iterable[str] = (),
        tenant: str = "",
        policy: Policy | None = None,
        result_type: Any = None,
    ) -> None:
        self._function = function
        self.engine = AsyncEngine(store, policy=policy)
        self._options: Options = {
            "scope": scope or scope_of(function),
            "tenant": tenant,
            "exclude_fields": compile_exclusions(exclude_fields),
            "result_type": result_type or declared_result(function),
        }

    async def process(self, payload: Any) -> ProcessingRecord:
        """The result, run now or as it was the first time; `was_replay` tells which."""
        function = self._function

        def work(context: Context) -> Awaitable[Any]:
            return function(payload)

        options = self._options.copy()
        options["payload"] = payload
        return await self.engine.record(work, **options)

    async def process_many(self, payloads: Iterable[Any]) -> list[ProcessingRecord]:
        """Many payloads, the claims made in one go."""
        function = self._function
        return await self.engine.record_many(lambda context, payload: function(payload), payloads, **self._options)

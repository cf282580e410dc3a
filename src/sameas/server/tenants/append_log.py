"""Documents numbered from 1 without gaps, in whatever store the service has: what one process adds, all can read.

Rule: number n + 1 is a record of the once engine, so of two processes that add at the same time one gets the number and
the other reads what is there and takes the next. Nothing is ever changed; reading one number is one round trip in
every kind of store.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from sameas.once.async_engine import AsyncEngine
from sameas.once.codec import Codec, TypedCodec, unpack
from sameas.once.record import State

T = TypeVar("T")


class AppendLog(Generic[T]):
    """The documents of one type under one name of one tenant."""

    def __init__(
        self, engine: AsyncEngine, kind: type[T], *, scope: str, tenant: str, retention: float | None = None
    ) -> None:
        self._engine = engine
        self._kind = kind
        self._codec: Codec = TypedCodec(kind)
        self._scope = scope
        self._tenant = tenant
        self._retention = retention

    async def read(self, number: int) -> T | None:
        """The document of a number, if it is there yet."""
        record = await self._engine.read(self._scope, _key(number), tenant=self._tenant, namespace="content")
        if record is None or record.state is not State.DONE or record.outcome is None:
            return None
        document: T = unpack(record.outcome, self._codec)
        return document

    async def last(self) -> tuple[int, T | None]:
        """The highest number and its document, found in as many reads as the number has binary digits, twice; 0 and
        None where there is nothing. Documents that expire make gaps: a chain that is asked this must live longer than
        its use.
        """
        low, last, step = 0, None, 1
        while (found := await self.read(low + step)) is not None:
            low, last, step = low + step, found, 2 * step
        # The last is below `low + step`, which is not there.
        while step > 1:
            step //= 2
            found = await self.read(low + step)
            if found is not None:
                low, last = low + step, found
        return low, last

    async def add(self, document: T, *, number: int) -> T:
        """Put the document under this number; gives what is there in the end, which may be another's."""

        def here(_: object) -> T:
            return document

        found: T = await self._engine.run(
            here,
            scope=self._scope,
            key=_key(number),
            tenant=self._tenant,
            namespace="content",
            retention=self._retention,
            result_type=self._kind,
        )
        return found


def _key(number: int) -> str:
    return f"{number:012d}"

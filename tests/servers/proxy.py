"""A TCP proxy that fails on purpose, in front of any server.

A message is one chunk as it arrives from either side: in a request-and-reply protocol that is one request
or one reply, as long as it is small and not pipelined. A fault is in force when the call that asks for it
returns; a fault at a message happens once, to the connection that carried it. The proxy runs in a thread of
its own and understands no protocol.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Literal, Self, TypeVar
from urllib.parse import urlsplit, urlunsplit

from tests.servers.link import Action, Counts, Link, Side, Trigger
from tests.servers.port import LOOPBACK, free_port

Answer = TypeVar("Answer")
CALL_WITHIN_SECONDS = 10.0


class FaultProxy:
    """Carries bytes between clients and one server until it is told to misbehave."""

    def __init__(self, *, port: int, host: str = LOOPBACK) -> None:
        self.host = LOOPBACK
        self.port = free_port()
        self.delay_seconds = 0.0
        self._target = (host, port)
        self._mode: Action | None = None
        self._triggers: list[Trigger] = []
        self._counts = Counts()
        self._links: dict[Link, asyncio.Task[None]] = {}
        self._healed = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._listener: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)

    @property
    def counts(self) -> Counts:
        """What has passed since the proxy was made; take the difference of two."""
        return self._counts

    def url_of(self, url: str) -> str:
        """The same address, but through the proxy."""
        parts = urlsplit(url)
        login, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{login}{at}{self.host}:{self.port}"))

    def delay(self, seconds: float) -> None:
        """Hold each message back, in both directions, until `heal`."""
        self._do(lambda: setattr(self, "delay_seconds", seconds))

    def cut(self) -> None:
        """Close every connection, and each new one at once, until `heal`."""
        self._do(lambda: self.break_off("cut"))

    def reset(self) -> None:
        """As `cut`, with a TCP reset."""
        self._do(lambda: self.break_off("reset"))

    def half_open(self) -> None:
        """Swallow everything, close nothing. A connection that met this stays dead; `heal` helps new ones."""
        self._do(lambda: self.break_off("half_open"))

    def heal(self) -> None:
        """End every fault and forget those still to come."""
        self._do(self._heal)

    def after(
        self,
        *,
        client_messages: int | None = None,
        server_messages: int | None = None,
        messages: int | None = None,
        action: Action,
        reach: Literal["connection", "everything"] = "connection",
    ) -> None:
        """Let so many messages pass, counted from now, and fail right behind the last of them.

        With `reach="everything"` the proxy stays broken, for all connections, until `heal`.
        """
        given: dict[Side | None, int | None]
        given = {"client": client_messages, "server": server_messages, None: messages}
        chosen: list[tuple[Side | None, int]]
        chosen = [(side, count) for side, count in given.items() if count is not None]
        if len(chosen) != 1:
            message = "name exactly one of client_messages, server_messages, messages"
            raise ValueError(message)
        side, count = chosen[0]
        self._arm(Trigger(side=side, left=count, action=action, everywhere=reach == "everything", forwards=True))

    def drop_request(self, n: int = 1, *, action: Action = "reset") -> None:
        """The nth client message from now does not reach the server."""
        self._arm(Trigger(side="client", left=n, action=action))

    def drop_reply(self, n: int = 1, *, action: Action = "reset") -> None:
        """The nth server message from now is lost: the server did what was asked, the client never hears."""
        self._arm(Trigger(side="server", left=n, action=action))

    @property
    def armed(self) -> bool:
        """Whether a fault at a message has yet to happen."""
        return self._do(lambda: bool(self._triggers))

    def start(self) -> Self:
        """Listen; returns when clients can connect."""
        self._thread.start()
        self._wait(self._listen())
        return self

    def close(self) -> None:
        """Reset what is open and end the thread."""
        if self._thread.is_alive():
            self._wait(self._shut())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(CALL_WITHIN_SECONDS)
        self._loop.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def break_off(self, action: Action) -> None:
        """Put all connections, present and future, into the fault. For the proxy's own thread."""
        self._mode = action
        for link in list(self._links):
            link.fail(action)

    def count(self, seen: Counts) -> None:
        """Add what a connection carried. For the proxy's own thread."""
        self._counts += seen

    def due(self, side: Side) -> Trigger | None:
        """The fault that this message sets off, if any. For the proxy's own thread."""
        fired = None
        for trigger in list(self._triggers):
            if trigger.side in (None, side):
                trigger.left -= 1
                if trigger.left <= 0:
                    self._triggers.remove(trigger)
                    fired = fired or trigger
        return fired

    async def hold_back(self) -> None:
        """Wait as long as `delay` says, or until `heal`."""
        if self.delay_seconds > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._healed.wait(), self.delay_seconds)

    def _arm(self, trigger: Trigger) -> None:
        if trigger.left < 1:
            message = f"messages are counted from 1, not {trigger.left}"
            raise ValueError(message)
        self._do(lambda: self._triggers.append(trigger))

    def _heal(self) -> None:
        self._mode = None
        self.delay_seconds = 0.0
        self._triggers.clear()
        self._healed.set()
        self._healed = asyncio.Event()
        for link in list(self._links):
            link.end_if_deserted()

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(self._accept, self.host, self.port)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(self, client=(reader, writer), target=self._target)
        task = asyncio.current_task()
        assert task is not None
        self._links[link] = task
        self._counts += Counts(connections=1)
        try:
            await link.carry(self._mode)
        finally:
            link.close()
            del self._links[link]

    async def _shut(self) -> None:
        if self._listener is not None:
            self._listener.close()
        running = list(self._links.items())
        for link, _ in running:
            link.fail("reset")
        await asyncio.gather(*(task for _, task in running), return_exceptions=True)
        # One more turn, so that closed transports tell their loop before it ends.
        await asyncio.sleep(0)

    def _do(self, change: Callable[[], Answer]) -> Answer:
        async def call() -> Answer:
            return change()

        return self._wait(call())

    def _wait(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_WITHIN_SECONDS)

"""Server-sent events: a run's events as a stream of text that browsers resume by themselves.

Rule: the id of a message is the event's number, so that `Last-Event-ID` resumes exactly; what has no number has no id.
The stream ends after the run's last event. When the service stops, it ends without one, and the client comes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from sameas.server.streams.admissions import Admission
from sameas.server.streams.lines import Line

MEDIA_TYPE = "text/event-stream"
# Milliseconds after which a browser comes back.
_RETRY = b"retry: 1000\n\n"
_ALIVE = b": alive\n\n"
_HEADERS = [
    (b"content-type", MEDIA_TYPE.encode() + b"; charset=utf-8"),
    (b"cache-control", b"no-store"),
    # Proxies that buffer would make a stream of a run into one answer at its end.
    (b"x-accel-buffering", b"no"),
]


class EventStream:
    """An ASGI answer that sends batches of events until there are no more, or the client is gone."""

    def __init__(self, batches: AsyncGenerator[list[Line], None], *, admission: Admission | None = None) -> None:
        self._batches = batches
        self._admission = admission

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        # A stream has a bound of its own, and leaves its place among the requests.
        scope["sameas.note"].leave()
        try:
            await self._stream(receive, send)
        finally:
            if self._admission is not None:
                self._admission.leave()

    async def _stream(self, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
        task, gone = asyncio.current_task(), asyncio.create_task(_until_gone(receive))
        # Sending to a client that is gone does nothing and says nothing, so its leaving is watched for.
        gone.add_done_callback(lambda left: task.cancel() if task is not None and not left.cancelled() else None)
        try:
            await send({"type": "http.response.body", "body": _RETRY, "more_body": True})
            async for batch in self._batches:
                body = b"".join([line.frame for line in batch]) if batch else _ALIVE
                await send({"type": "http.response.body", "body": body, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except asyncio.CancelledError:
            if task is None or not gone.done():
                raise
            task.uncancel()
        finally:
            gone.cancel()
            await self._batches.aclose()


async def _until_gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

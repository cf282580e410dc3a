"""Wake-ups over pub/sub: one connection and one thread per store, there only while somebody listens.

A listener is subscribed to the channel of its record and is woken once when the subscription is in place, so
that a change between its last look and the subscription is not missed. A process hears of the records it
waits for and of no others; one pattern for all would bring it every change of every record.

The thread alone closes the connection; others only send on it. Whatever goes wrong, the thread begins anew.

Nothing here is relied on: waiters poll beneath it, and a tier lets its records lapse.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import Any, Final

import redis
from redis.exceptions import RedisError

from sameas.once.errors import StoreError
from sameas.once.forks import renew_after_fork

Wake = Callable[[], None]
# The digest of a forgotten record; None if some may have been missed.
Drop = Callable[[bytes | None], None]

# How long the thread stays without listeners: waiters often come in bursts.
_LINGER: Final = 2.0
# A connection that is silent for so long is asked whether it lives, and given up when it does not say so.
_PING_AFTER: Final = 5.0
_TICK: Final = 0.5
_JOIN: Final = 0.5
_FIRST_RETRY: Final = 0.05
_LAST_RETRY: Final = 2.0

# What a restart of the server brings; anything else is told with its trace.
_BROKEN: Final = (RedisError, OSError, StoreError)

_log = logging.getLogger("sameas.redis")


class RedisWaker:
    """Tells waiters of changes, and tiers of what was forgotten."""

    def __init__(self, connection: Callable[[], Any], *, prefix: bytes) -> None:
        self._new_connection = connection
        self._prefix = prefix
        self._forgotten = prefix + b"forgotten"
        self._inherited: list[Any] = []
        self._renew()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """The thread stayed with the parent, and so did whoever listened."""
        self._inherited.append(self._connection)
        self._renew()

    def _renew(self) -> None:
        self._lock = threading.RLock()
        self._wanted: dict[bytes, list[Wake]] = {}
        self._drops: list[Drop] = []
        self._connection: Any = None
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()

    def listen(self, digest: bytes, wake: Wake) -> Wake:
        """Call `wake`, from any thread, when the record changes; returns what ends the listening."""
        channel = self._prefix + digest.hex().encode()
        with self._lock:
            listeners = self._wanted.get(channel)
            if listeners is None:
                self._wanted[channel] = [wake]
                self._subscribe(b"SUBSCRIBE", [channel])
            else:
                listeners.append(wake)
        return partial(self._unlisten, channel, wake)

    def watch(self, drop: Drop) -> Wake:
        """Call `drop`, from any thread, for each forgotten record; returns what ends the watching."""
        with self._lock:
            self._drops.append(drop)
            if self._forgotten not in self._wanted:
                self._wanted[self._forgotten] = []
                self._subscribe(b"SUBSCRIBE", [self._forgotten])
        return partial(self._unwatch, drop)

    @property
    def listening(self) -> bool:
        """Whether the thread is there."""
        return self._thread is not None

    def close(self) -> None:
        """End the thread; a later `listen` starts another."""
        with self._lock:
            thread, connection, closed = self._thread, self._connection, self._closed
            self._wanted.clear()
            self._drops.clear()
            self._thread, self._connection, self._closed = None, None, threading.Event()
        closed.set()
        if connection is not None:
            _hang_up(connection)
        if thread is not None and thread is not threading.current_thread():
            # One that is just connecting ends by itself, a little later.
            thread.join(_JOIN)

    def _unlisten(self, channel: bytes, wake: Wake) -> None:
        with self._lock:
            listeners = self._wanted.get(channel)
            if listeners is None or wake not in listeners:
                return
            listeners.remove(wake)
            if not listeners:
                del self._wanted[channel]
                self._subscribe(b"UNSUBSCRIBE", [channel])

    def _unwatch(self, drop: Drop) -> None:
        with self._lock:
            if drop in self._drops:
                self._drops.remove(drop)
            if not self._drops and self._wanted.pop(self._forgotten, None) is not None:
                self._subscribe(b"UNSUBSCRIBE", [self._forgotten])

    def _subscribe(self, verb: bytes, channels: Sequence[bytes]) -> None:
        """Under the lock. Without a connection the thread subscribes to all that is wanted as soon as it has
        one."""
        if self._connection is None:
            if verb == b"SUBSCRIBE":
                self._start()
            return
        try:
            _send(self._connection, verb, channels)
        except (RedisError, OSError):
            # The thread finds the connection broken and makes another. Closed here, it would break under its hands.
            _hang_up(self._connection)
            self._connection = None

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, args=(self._closed,), name="sameas-redis-waker", daemon=True
            )
            self._thread.start()

    def _run(self, closed: threading.Event) -> None:
        delay = _FIRST_RETRY
        told = False
        while not closed.is_set():
            connection = None
            try:
                connection = self._new_connection()
                connection.connect()
                with self._lock:
                    if closed.is_set():
                        return
                    self._connection = connection
                    wanted = list(self._wanted)
                    if wanted:
                        self._subscribe(b"SUBSCRIBE", wanted)
                delay, told = _FIRST_RETRY, False
                if self._hear(connection, closed):
                    return
            except Exception as error:
                if not told and not closed.is_set():
                    told = True
                    _log.warning(
                        "the wake-up connection to Redis broke (%s); waiters poll until it is back",
                        error,
                        exc_info=None if isinstance(error, _BROKEN) else error,
                    )
            finally:
                with self._lock:
                    if connection is not None and self._connection is connection:
                        self._connection = None
                _close(connection)
            self._tell_drops(None)
            closed.wait(delay)
            delay = min(delay * 2, _LAST_RETRY)

    def _hear(self, connection: Any, closed: threading.Event) -> bool:
        """Pass on what comes; True when nobody listens any more and the thread has been given up."""
        heard = wanted_at = monotonic()
        asked = False
        while not closed.is_set():
            if connection.can_read(timeout=_TICK):
                self._pass_on(connection.read_response())
                heard, asked = monotonic(), False
                continue
            now = monotonic()
            with self._lock:
                if self._wanted:
                    wanted_at = now
                elif now - wanted_at > _LINGER:
                    if not closed.is_set():
                        self._thread = self._connection = None
                    return True
                if self._connection is not connection:
                    return False
                if now - heard > _PING_AFTER:
                    if asked:
                        raise redis.TimeoutError("no answer to a ping")
                    connection.send_packed_command(connection.pack_command(b"PING"), check_health=False)
                    heard, asked = now, True
        return True

    def _pass_on(self, message: Any) -> None:
        kind, channel, *rest = message
        if kind == b"message" and channel == self._forgotten:
            self._tell_drops(bytes.fromhex(rest[0][len(self._prefix) :].decode()))
        elif kind == b"subscribe" and channel == self._forgotten:
            # What was forgotten before this moment was not heard.
            self._tell_drops(None)
        elif kind in (b"message", b"subscribe"):
            with self._lock:
                listeners = tuple(self._wanted.get(channel, ()))
            for wake in listeners:
                _call(wake)

    def _tell_drops(self, digest: bytes | None) -> None:
        with self._lock:
            drops = tuple(self._drops)
        for drop in drops:
            _call(partial(drop, digest))


def _call(listener: Callable[[], None]) -> None:
    """Tell one listener; what it raises must not keep the others from hearing."""
    try:
        listener()
    except Exception:
        _log.exception("a listener for wake-ups from Redis failed")


def _send(connection: Any, verb: bytes, channels: Sequence[bytes]) -> None:
    # Not redis-py's own sending: after an error it closes the connection, which another thread reads from.
    sock = connection._sock
    if sock is None:
        raise redis.ConnectionError("the connection is closed")
    sock.sendall(b"".join(connection.pack_command(verb, *channels)))


def _close(connection: Any) -> None:
    try:
        if connection is not None:
            connection.disconnect()
    except Exception:
        _log.exception("a wake-up connection to Redis could not be closed")


def _hang_up(connection: Any) -> None:
    """Have the thread that reads from the connection stop; it closes the connection itself."""
    sock = getattr(connection, "_sock", None)
    if sock is not None:
        try:
            sock.shutdown(2)
        except OSError:
            return

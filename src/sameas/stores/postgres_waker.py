"""Wake-ups from PostgreSQL: a thread that listens while somebody waits, and ends when nobody does.

A waiter's record is marked as watched, and whoever changes a watched record notifies; without waiters a write costs
nothing more. The thread has a direct connection of its own, opens it again when it breaks, and is made anew in a
forked child. A wake-up may be late or lost: waiters poll beneath.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from select import select
from time import monotonic, sleep
from typing import Any

import psycopg
from psycopg import Connection, Notify

from sameas.once.forks import renew_after_fork
from sameas.stores.statements import bound, statements

CHANNEL = "sameas"
# What is notified when many records have changed at once.
EVERYTHING = "*"

Wake = Callable[[], None]
# Told the digest of a record, or None if many may have gone.
Drop = Callable[[bytes | None], None]

# A new waiter's record is marked within this time.
_TICK = 0.01
# A mark goes with a record that is released; whoever still waits marks the next one within this time.
_MARK_AGAIN = 0.1
# How long the connection is kept when nobody waits: the next waiter often comes soon.
_LINGER = 2.0
_RECONNECT_AFTER = 0.25

_log = logging.getLogger("sameas.postgres")


class PostgresWaker:
    """Tells waiters in this process what happened to records, in whichever process."""

    def __init__(self, conninfo: str, *, linger: float = _LINGER) -> None:
        self._conninfo = conninfo
        self._linger = linger
        self._watch = statements("postgres")["watch"]
        self._renew()
        renew_after_fork(self)

    def after_fork(self) -> None:
        self._renew()

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[bytes, dict[Wake, None]] = {}
        self._unmarked: set[bytes] = set()
        self._drops: list[Drop] = []
        self._thread: threading.Thread | None = None

    @property
    def listening(self) -> bool:
        """Whether the thread is there."""
        return self._thread is not None

    def listen(self, digest: bytes, wake: Wake) -> Callable[[], None]:
        with self._lock:
            self._listeners.setdefault(digest, {})[wake] = None
            self._unmarked.add(digest)
            self._start()
        return partial(self._unlisten, digest, wake)

    def watch(self, drop: Drop) -> Callable[[], None]:
        """Call `drop`, from any thread, for each record that is told of, which every forgotten one is; returns what
        ends the watching."""
        with self._lock:
            self._drops.append(drop)
            self._start()
        return partial(self._unwatch, drop)

    def _start(self) -> None:
        """Under the lock."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="sameas-listen", daemon=True)
            self._thread.start()

    def _unwatch(self, drop: Drop) -> None:
        with self._lock:
            if drop in self._drops:
                self._drops.remove(drop)

    def _unlisten(self, digest: bytes, wake: Wake) -> None:
        with self._lock:
            wakes = self._listeners.get(digest, {})
            wakes.pop(wake, None)
            if not wakes:
                self._listeners.pop(digest, None)
                self._unmarked.discard(digest)

    def _serve(self) -> None:
        while not self._ended():
            try:
                with psycopg.connect(self._conninfo, autocommit=True, connect_timeout=5) as connection:
                    # What happened while nobody listened is not told again.
                    connection.add_notify_handler(self._notified)
                    connection.execute(f"LISTEN {CHANNEL}")
                    self._wake_all()
                    self._listen(connection)
            except psycopg.Error:
                sleep(_RECONNECT_AFTER)
            except Exception:
                # Whoever waits polls meanwhile; a thread that died would leave them to that for ever.
                _log.exception("the wake-up connection to PostgreSQL broke; waiters poll until it is back")
                sleep(_RECONNECT_AFTER)

    def _listen(self, connection: Connection[Any]) -> None:
        deserted_at: float | None = None
        mark_all_at = monotonic() + _MARK_AGAIN
        while True:
            now = monotonic()
            with self._lock:
                waited_for = bool(self._listeners or self._drops)
                digests = list(self._listeners) if now >= mark_all_at else list(self._unmarked)
                self._unmarked.clear()
            if waited_for:
                deserted_at = None
            else:
                deserted_at = deserted_at or now
                if now - deserted_at >= self._linger:
                    return
            if now >= mark_all_at:
                mark_all_at = now + _MARK_AGAIN
            if digests:
                connection.execute(*bound(self._watch, {"digests": digests}, "pyformat"))
            # With the mark in place, a change is told; one that came before the mark is found by the poll.
            if select([connection.fileno()], [], [], _TICK if waited_for else _MARK_AGAIN)[0]:
                connection.pgconn.consume_input()
                while told := connection.pgconn.notifies():
                    self._told(told.extra.decode())

    def _ended(self) -> bool:
        """Whether nobody waits; the thread is then gone for whoever comes next."""
        with self._lock:
            if self._listeners or self._drops:
                return False
            self._thread = None
            return True

    def _notified(self, notify: Notify) -> None:
        self._told(notify.payload)

    def _told(self, payload: str) -> None:
        if payload == EVERYTHING:
            self._wake_all()
            return
        try:
            digest = bytes.fromhex(payload)
        except ValueError:
            # Another program's word on this channel.
            return
        with self._lock:
            wakes, drops = list(self._listeners.get(digest, ())), list(self._drops)
        for wake in wakes:
            _call(wake)
        for drop in drops:
            _call(partial(drop, digest))

    def _wake_all(self) -> None:
        with self._lock:
            wakes = [wake for listeners in self._listeners.values() for wake in listeners]
            drops = list(self._drops)
        for wake in wakes:
            _call(wake)
        for drop in drops:
            _call(partial(drop, None))


def _call(listener: Callable[[], None]) -> None:
    """Tell one listener; what it raises must not keep the others from hearing."""
    try:
        listener()
    except Exception:
        _log.exception("a listener for wake-ups from PostgreSQL failed")

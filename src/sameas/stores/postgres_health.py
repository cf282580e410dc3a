"""What a new connection to PostgreSQL is asked first: whether commits reach the disk, and who really answers.

A pooler shows itself: the process that a session is told to belong to is not the one that answers. One in transaction
mode gives every statement to another session, so that nothing may be left behind on one: no named statement, no LISTEN.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import psycopg

from sameas.once.errors import StoreMisconfigured

# How often a statement is asked before the server is told its name; "auto" names none through a pooler.
PrepareThreshold = int | None | Literal["auto"]

QUESTION: Final = "SELECT pg_backend_pid(), current_setting('fsync')"
_DIRECT_THRESHOLD: Final = 5
# A busy pooler may give a session to somebody else between two looks.
_LOOKS: Final = 5
_ANSWER_WITHIN: Final = 5


class Admission:
    """What is asked of each new connection of a store."""

    def __init__(self, *, prepare_threshold: PrepareThreshold, strict: bool) -> None:
        self.names_only_directly = prepare_threshold == "auto"
        self.prepare_threshold = _DIRECT_THRESHOLD if prepare_threshold == "auto" else prepare_threshold
        self._strict = strict

    def admit(self, session: Any, answer: Any) -> None:
        """Take a connection with its answer to the question, or refuse the server."""
        process, fsync = answer
        if self._strict and fsync == "off":
            raise StoreMisconfigured(
                "This PostgreSQL does not wait for the disk (fsync is off), so a power cut can lose finished work or "
                "damage the whole database: set fsync to on. Open the store with strict=False to use it all the same."
            )
        if self.names_only_directly and process != session.pgconn.backend_pid:
            session.prepare_threshold = None


def refuse_pooled_listening(conninfo: str) -> None:
    """Raise where nobody would hear a NOTIFY at this address: a pooler there gives sessions from hand to hand."""
    with _connected(conninfo) as listener:
        for _ in range(_LOOKS):
            process = _process(listener)
            if process == listener.pgconn.backend_pid:
                return
            with _connected(conninfo) as other, other.transaction():
                # In a transaction it has a session to itself: never the listener's, unless that is given away.
                if _process(other) == process:
                    raise StoreMisconfigured(
                        "listen_url leads to a pooler in transaction mode, where no wake-up is heard: give it the "
                        "address of the PostgreSQL server itself, or leave it out, and waiters poll."
                    )


def _connected(conninfo: str) -> psycopg.Connection[Any]:
    return psycopg.connect(conninfo, autocommit=True, connect_timeout=_ANSWER_WITHIN, prepare_threshold=None)


def _process(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None
    return int(row[0])

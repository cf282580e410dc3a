"""Events as structlog's log lines: one for every call that ends, and one for what an operator has to know.

Tenants, scopes, the digests of records and the types of errors are written. Keys, payloads, results, fingerprints and
the messages of errors are not: a key is its client's own, and a driver's message can hold the values of the statement
that failed. Who has a key finds its lines by `record_digest`.
"""

from __future__ import annotations

from typing import Any

import structlog
from structlog.typing import FilteringBoundLogger

from sameas.once.observe import CallEnded, Event, KeyFailed, Removed, Settled, StoreFailed, answered
from sameas.once.record import Accepted, Identity

_MICROSECOND_DIGITS = 6


class LogObserver:
    """Writes to the given logger, or to structlog's logger "sameas", as the application has configured it.

    Where structlog is configured on `structlog.stdlib.LoggerFactory`, the lines go through standard logging.
    """

    def __init__(self, logger: FilteringBoundLogger | None = None) -> None:
        self._log: FilteringBoundLogger = structlog.get_logger("sameas") if logger is None else logger

    def on(self, event: Event) -> None:
        match event:
            case CallEnded():
                self._ended(event)
            case Settled():
                self._settled(event)
            case Removed():
                self._removed(event)
            case StoreFailed(operation=operation, error=error):
                self._log.error("store failed", operation=operation, **_kinds(error))
            case KeyFailed(scope=scope, error=error):
                self._log.warning("key failed", scope=scope, **_kinds(error))
            case _:
                pass

    def _ended(self, event: CallEnded) -> None:
        answer = answered(event)
        fields: dict[str, Any] = {
            "how": answer.how,
            **_names(event.started.identity),
            "attempt": event.attempt,
            "seconds": round(event.seconds, _MICROSECOND_DIGITS),
            "waited": round(event.waited, _MICROSECOND_DIGITS),
            "replay": answer.replay,
        }
        if not event.stored:
            fields["stored"] = False
        if not event.kept:
            fields["kept"] = False
        if event.error is not None:
            self._log.warning("call ended", **fields, **_kinds(event.error))
        elif event.stored and (event.kept or answer.replay):
            self._log.info("call ended", **fields)
        else:
            # Done, and yet a later caller will not be given this result.
            self._log.warning("call ended", **fields)

    def _settled(self, event: Settled) -> None:
        names = _names(event.identity)
        if isinstance(event.answer, Accepted):
            if event.operation == "forget":
                self._log.info("records removed", why="forgotten", count=1, **names)
        elif event.operation == "renew":
            # No alarm: a renewal that crosses the end of its own call is refused too. A lease that is really lost
            # is told again when the work is handed in.
            self._log.info("lease not renewed", **names)
        elif event.operation != "forget":
            self._log.warning("claim lost", operation=event.operation, **names)

    def _removed(self, event: Removed) -> None:
        if not event.count:
            return
        if event.selection is not None:
            which = event.selection
            self._log.info(
                "records removed",
                why=event.why,
                count=event.count,
                tenant=which.tenant,
                scope=which.scope,
                tag=which.tag,
            )
        elif event.why != "forgotten":
            # A single record that was forgotten has been told with its digest.
            self._log.info("records removed", why=event.why, count=event.count)


def _names(identity: Identity) -> dict[str, str]:
    return {"record": identity.digest.hex(), "tenant": identity.tenant, "scope": identity.scope}


def _kinds(error: BaseException) -> dict[str, str]:
    kinds = {"error": type(error).__name__}
    if error.__cause__ is not None:
        kinds["cause"] = type(error.__cause__).__name__
    return kinds

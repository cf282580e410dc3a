"""The engine of a Celery app in this process, from the app's configuration.

It is opened when the first task needs it, so each child of a prefork pool opens its own; what was inherited through a
fork is left alone. A configuration that names no store is refused with what to write.

    sameas_store       the URL of the records, as for `open_store`
    sameas_policy      the Policy of every scope, sameas_policies those of single scopes by name
    sameas_secret      the secret of fingerprints
    sameas_observers   who is told
    sameas_engine      an Engine, or a function without arguments that makes one, instead of all of the above
"""

from __future__ import annotations

from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from sameas.connections import open_store
from sameas.once.engine import Engine
from sameas.once.forks import renew_after_fork

_HOW = (
    "a task of sameas needs somewhere to keep its records: set app.conf.sameas_store to a URL such as"
    " 'redis://localhost/0' or 'sqlite:///sameas.db', or app.conf.sameas_engine to an Engine"
)


class Engines:
    """The engines of this process, one for each app."""

    def __init__(self) -> None:
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()
        self._opened: WeakKeyDictionary[Any, Engine] = WeakKeyDictionary()

    def of(self, app: Any) -> Engine:
        """The app's engine, opened now where it is not open yet."""
        engine = self._opened.get(app)
        if engine is None:
            with self._lock:
                engine = self._opened.get(app)
                if engine is None:
                    engine = self._opened[app] = open_engine(app.conf)
        return engine

    def close(self, app: Any) -> None:
        """Close the app's engine, unless it was given open; the next task opens it again."""
        with self._lock:
            engine = self._opened.pop(app, None)
        if engine is not None and engine is not app.conf.get("sameas_engine"):
            engine.close()


def open_engine(conf: Any) -> Engine:
    """The engine that a configuration describes."""
    given = conf.get("sameas_engine")
    if given is not None:
        engine = given() if callable(given) else given
        if not isinstance(engine, Engine):
            raise TypeError(f"sameas_engine must be an Engine or make one, not a {type(engine).__qualname__}")
        return engine
    url = conf.get("sameas_store")
    if not url:
        raise ValueError(_HOW)
    return Engine(
        open_store(url),
        policy=conf.get("sameas_policy"),
        policies=conf.get("sameas_policies"),
        secret=conf.get("sameas_secret") or b"",
        observers=conf.get("sameas_observers") or (),
    )


ENGINES = Engines()

"""A process that changes a collection until it is killed: `python -m tests.integration.collection_process FOLDER`.

With a name and a number it erases a thing, and is killed when it has asked the database so often.
"""

import os
import random
import signal
import sys
from pathlib import Path

from bench.collections.holding import put
from bench.collections.world import World
from sameas.collections import Collections, local_caller, open_tables
from sameas.databases import Session


def documents():
    return list(World(30, seed=8).documents(12, statements=6))


def change_for_ever(folder: Path) -> None:
    """Put documents in and take them out, in an order of its own."""
    collection = Collections(open_tables(f"sqlite:///{folder / 'collections.db'}")).open("bench", caller=local_caller())
    written, draw = documents(), random.Random()
    print("ready", flush=True)
    while True:
        one = draw.choice(written)
        if collection.has_source(one.name) and draw.random() < 0.45:
            collection.remove_name(one.name)
        else:
            put(collection, one, version=draw.randrange(3))
        print(one.name, flush=True)


def erase(folder: Path, named: str, statements: int) -> None:
    """Erase a thing; how many statements that took is printed, if so many are not reached."""
    tables = open_tables(f"sqlite:///{folder / 'collections.db'}")
    collection = Collections(tables).open("bench", caller=local_caller())
    collection.traits  # noqa: B018 - what is read before the erasure begins does not count
    asked = 0
    run, run_many = Session.run, Session.run_many

    def count() -> None:
        nonlocal asked
        if asked == statements:
            os.kill(os.getpid(), signal.SIGKILL)
        asked += 1

    def counted_run(self, *given, **values):
        count()
        return run(self, *given, **values)

    def counted_run_many(self, *given, **values):
        count()
        return run_many(self, *given, **values)

    Session.run, Session.run_many = counted_run, counted_run_many  # type: ignore[method-assign, assignment]
    collection.erase(named)
    print(asked)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        erase(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    else:
        change_for_ever(Path(sys.argv[1]))

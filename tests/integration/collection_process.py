"""A process that changes a collection until it is killed: `python -m tests.integration.collection_process FOLDER KIND`."""

import random
import sys
from pathlib import Path

from bench.collections.holding import put
from bench.collections.world import World
from sameas.collections import Collections, local_caller, open_tables


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


if __name__ == "__main__":
    change_for_ever(Path(sys.argv[1]))

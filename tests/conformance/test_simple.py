"""A store that can compare keeps the whole contract, except for what it says that it does not promise."""

from threading import Lock

import pytest

from sameas.stores.simple import ComparingStore, lift, lift_async
from sameas.testing import Capabilities, MovableClock, StoreConformance


class Shelf(ComparingStore):
    """Values in a dictionary."""

    def __init__(self):
        self.values = {}
        self.lock = Lock()

    def get(self, key):
        return self.values.get(key)

    def set_if_absent(self, key, value):
        with self.lock:
            return self.values.setdefault(key, value) is value

    def replace(self, key, old, new):
        with self.lock:
            if self.values.get(key) != old:
                return False
            self.values[key] = new
            return True

    def delete(self, key, old):
        with self.lock:
            if self.values.get(key) != old:
                return False
            del self.values[key]
            return True


class TestComparingStore(StoreConformance):
    capabilities = Capabilities(movable_clock=True, searchable=False)

    def open(self):
        self.clock = MovableClock()
        return lift(Shelf(), clock=self.clock)

    def advance(self, seconds):
        self.clock.advance(seconds)

    def test_prune_deletes_expired_records_in_batches_and_nothing_else(self):
        pytest.skip("it says that it does not prune")


class TestAsyncComparingStore(TestComparingStore):
    def open(self):
        self.clock = MovableClock()
        return lift_async(Shelf(), clock=self.clock)

"""The memory store keeps the contract, for threads and for tasks."""

from sameas.once.store import AsyncStore, Store
from sameas.stores.memory import MemoryBackend
from sameas.testing import Capabilities, MovableClock, StoreConformance


class TestMemory(StoreConformance):
    capabilities = Capabilities(movable_clock=True)

    def open(self):
        self.clock = MovableClock()
        return Store(MemoryBackend(self.clock))

    def advance(self, seconds):
        self.clock.advance(seconds)


class TestAsyncMemory(TestMemory):
    def open(self):
        self.clock = MovableClock()
        return AsyncStore(MemoryBackend(self.clock))

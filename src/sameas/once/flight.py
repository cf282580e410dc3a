"""One claim per key and process: the first caller leads, those who come while it is under way follow and share.

A flight that lands without a result (its leader failed, was refused or gave up) is over; each follower boards again,
and the first one back leads. Flights are gone from the table when they land: nothing grows with the number of keys.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from msgspec import Struct

from sameas.once.errors import TooManyWaiters
from sameas.once.record import Record

Wake = Callable[[], None]


class Flight(Struct, eq=False):
    """One key under way in this process."""

    fingerprint: str
    working: bool = False
    landed: bool = False
    record: Record | None = None
    stored: bool = True
    # In the order they came; a dictionary, because ten thousand of them leave one by one.
    followers: dict[Wake, None] = {}


class Flights:
    """The flights of one engine, for threads and event loops alike.

    Boarding and landing take no lock: one dictionary operation decides who leads, and a follower that registers looks
    once more whether the flight has landed meanwhile. The lock is for the list of followers alone.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._flights: dict[bytes, Flight] = {}

    def __len__(self) -> int:
        return len(self._flights)

    def board(self, digest: bytes, flight: Flight) -> Flight:
        """The key's flight: the given one, which its caller then leads, unless there is one already."""
        return self._flights.setdefault(digest, flight)

    def follow(self, flight: Flight, wake: Wake, *, at_most: int) -> bool:
        """Have `wake` called when the flight takes up its work or lands; False where it has landed already."""
        with self._lock:
            if len(flight.followers) >= at_most:
                raise TooManyWaiters
            flight.followers[wake] = None
        return not flight.landed

    def leave(self, flight: Flight, wake: Wake) -> None:
        """Stop following."""
        with self._lock:
            flight.followers.pop(wake, None)

    def tell(self, flight: Flight) -> None:
        """Wake those who follow: the flight took up its work, so that some need not wait, or it landed."""
        with self._lock:
            followers = list(flight.followers)
        for wake in followers:
            wake()

    def land(self, digest: bytes, flight: Flight, record: Record | None, *, stored: bool = True) -> None:
        """The flight is over, with the record that everybody shares or with nothing. Landing again changes nothing."""
        if not flight.landed:
            flight.record = record
            flight.stored = stored
        if self._flights.get(digest) is flight:
            del self._flights[digest]
        flight.landed = True
        if flight.followers:
            self.tell(flight)

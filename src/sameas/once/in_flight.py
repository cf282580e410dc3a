"""One claim per key and process: the first caller leads, those who come while it is under way follow and share.

A call that ends without a result (its leader failed, was refused or gave up) is over; each follower joins again,
and the first one back leads. Calls are gone from the table when they end: nothing grows with the number of keys.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from msgspec import Struct

from sameas.once.errors import TooManyWaiters
from sameas.once.record import Record

Wake = Callable[[], None]


class InFlightCall(Struct, eq=False):
    """One key under way in this process."""

    fingerprint: str
    working: bool = False
    landed: bool = False
    record: Record | None = None
    stored: bool = True
    # In the order they came; a dictionary, because ten thousand of them leave one by one.
    followers: dict[Wake, None] = {}


class InFlightCalls:
    """The calls in flight of one engine, for threads and event loops alike.

    Boarding and landing take no lock: one dictionary operation decides who leads, and a follower that registers looks
    once more whether the call has ended meanwhile. The lock is for the list of followers alone.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._in_flight_calls: dict[bytes, InFlightCall] = {}

    def __len__(self) -> int:
        return len(self._in_flight_calls)

    def join_or_lead(self, digest: bytes, in_flight: InFlightCall) -> InFlightCall:
        """The call in flight for the key: the given one, which its caller then leads, unless there is one already."""
        return self._in_flight_calls.setdefault(digest, in_flight)

    def follow(self, in_flight: InFlightCall, wake: Wake, *, at_most: int) -> bool:
        """Have `wake` called when the call takes up its work or ends; False if it has ended already."""
        with self._lock:
            if len(in_flight.followers) >= at_most:
                raise TooManyWaiters
            in_flight.followers[wake] = None
        return not in_flight.landed

    def leave(self, in_flight: InFlightCall, wake: Wake) -> None:
        """Stop following."""
        with self._lock:
            in_flight.followers.pop(wake, None)

    def wake_followers(self, in_flight: InFlightCall) -> None:
        """Wake those who follow: the call took up its work, so that some need not wait, or it ended."""
        with self._lock:
            followers = list(in_flight.followers)
        for wake in followers:
            wake()

    def finish(self, digest: bytes, in_flight: InFlightCall, record: Record | None, *, stored: bool = True) -> None:
        """The call is over, with the record that everybody shares or with nothing. Ending again changes nothing."""
        if not in_flight.landed:
            in_flight.record = record
            in_flight.stored = stored
        if self._in_flight_calls.get(digest) is in_flight:
            del self._in_flight_calls[digest]
        in_flight.landed = True
        if in_flight.followers:
            self.wake_followers(in_flight)

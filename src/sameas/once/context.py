"""What the work is told about itself."""

from __future__ import annotations

from contextvars import ContextVar

from msgspec import Struct, field

from sameas.identity.canonical import join, sha256_hex
from sameas.once.forks import this_process
from sameas.once.record import Identity, Lease


class Context(Struct, eq=False):
    """Handed to the work. `attempt` counts the tries from 1; `fence` grows with every holder of the key."""

    lease: Lease
    attempt: int
    # Until when, by this process's monotonic clock, the lease is certainly ours.
    safe_until: float
    # Where the record is kept.
    place: object
    # A child that the work forks must leave the record to its parent.
    process: object = field(default_factory=this_process)
    # The former identity of work that is taken over from a program which knew it by that one.
    formerly: Identity | None = None
    # What tells it apart from other work that may come under its key, as a credential does; no part of the identity.
    apart: str = ""
    # Whether the lease went to another worker: what this one still does will not be accepted.
    lost: bool = False
    # Whether the work is over; tasks that it started may outlive it and inherit this context.
    ended: bool = False

    @property
    def identity(self) -> Identity:
        return self.lease.identity

    @property
    def key(self) -> str:
        return self.lease.identity.key

    @property
    def fence(self) -> int:
        """Pass it to what the work writes to, to have a late worker refused there too."""
        return self.lease.fence

    def child_key(self, name: str) -> str:
        """A key for something downstream (a payment, a mail, another service), the same at every attempt."""
        identity = self.formerly or self.lease.identity
        of = (self.apart,) if self.apart else ()
        return "sha256-" + sha256_hex(join(identity.digest.hex(), name, *of))


# The work that this thread or task is inside of, outermost first.
WORKING: ContextVar[tuple[Context, ...]] = ContextVar("sameas_working", default=())


def current_context() -> Context:
    """The context of the work that is being done here, for functions that are not handed it. Raises LookupError outside
    of any work."""
    working = WORKING.get()
    if not working:
        raise LookupError("no work of sameas is being done in this thread or task")
    return working[-1]

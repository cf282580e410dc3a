"""A program of before types had tags: the same engine, other keys, and attempt ids that begin with a hex digit."""

from msgspec.structs import asdict

from sameas import Engine
from sameas.identity.key import content_keys
from sameas.once.call import Call
from sameas.once.store import Store


def former_key(payload):
    former = content_keys(payload)[1]
    assert former is not None
    return former()


def before(payload, **options):
    """The options of a call as a program of before made it."""
    return {"scope": "pay", "key": former_key(payload), "namespace": "content", **options}


class CallOfBefore(Call):
    """A call that knows no marks."""

    def _asks_again(self, theirs):
        return False
        yield


class Before:
    """An engine of before, on the same records."""

    def __init__(self, backend, **options):
        self.engine = Engine(Store(backend), **options)
        intake = self.engine._call_builder
        call_of_today, name_of_today = intake.call, intake._new_attempt
        intake._new_attempt = lambda: name_of_today().removeprefix("t")
        intake.call = lambda *args, **named: CallOfBefore(**asdict(call_of_today(*args, **named)))

    def record(self, work, payload):
        return self.engine.record(work, **before(payload))

    def run(self, work, payload):
        return self.record(work, payload).result

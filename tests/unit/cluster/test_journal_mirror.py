"""The journal of a run that goes on elsewhere: what is believed of what is told live."""

import asyncio
from collections import Counter

import pytest

from sameas.cluster.broker import Broker
from sameas.extraction.runs.run_objects import RunObjects
from sameas.objects import open_objects
from sameas.server.runs.dispatch import Dispatch
from sameas.server.runs.pending_runs import PendingObjects, PendingRun
from sameas.server.schemas import ExtractRequest
from sameas.server.streams.journal_mirror import JournalMirror, JournalMirrors

pytestmark = pytest.mark.anyio
KEY = "sha256-" + "ab" * 32


@pytest.fixture
def run_objects(tmp_path):
    return RunObjects(open_objects(f"file://{tmp_path}/objects"), tenant="")


@pytest.fixture
def mirror(run_objects, tmp_path):
    async def is_open():
        return True

    made = JournalMirror(run_objects, KEY, tmp_path / "journal.jsonl", is_open=is_open)
    made.open()
    return made


def lines_of(mirror):
    return mirror.path.read_bytes().splitlines()


async def test_a_replaced_worker_that_still_talks_is_not_listened_to(mirror):
    mirror.hear(1, [b"one"], 10)
    mirror.hear(2, [b"two of the next"], 11)
    mirror.hear(3, [b"three of the first"], 10)
    mirror.hear(3, [b"three of the next"], 11)
    assert lines_of(mirror) == [b"one", b"two of the next", b"three of the next"]


async def test_what_an_earlier_release_tells_is_believed(mirror):
    mirror.hear(1, [b"one"], 11)
    mirror.hear(2, [b"two"], 0)
    assert lines_of(mirror) == [b"one", b"two"]


async def test_a_gap_is_filled_from_the_objects(mirror, run_objects):
    for number in (1, 2, 3):
        run_objects.put(KEY, f"{7:020d}", f"events/{number:09d}-{number:09d}", b"line %d\n" % number)
    mirror.hear(3, [b"line 3"], 7)
    assert lines_of(mirror) == []
    following = asyncio.create_task(mirror.follow())
    async with asyncio.timeout(30):
        while len(lines_of(mirror)) < 3:
            await asyncio.sleep(0.01)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    assert lines_of(mirror) == [b"line 1", b"line 2", b"line 3"]


class Hearing:
    """A reader that hears everything at once; what is told is up to the test."""

    is_hearing = True

    def listen(self, *_):
        pass

    leave = listen

    async def close(self):
        pass


async def test_many_runs_that_are_listened_to_are_looked_at_together(tmp_path):
    """Nobody tells of the end here: the one look at all requests finds it."""
    objects = open_objects(f"file://{tmp_path}/objects")
    pending, asked = PendingObjects(objects), Counter()

    async def nobody(space, key):
        return None

    keys = [f"sha256-{number:064x}" for number in range(40)]
    dispatch = Dispatch(Broker("memory://"), pending, record=nobody, hears_ends=lambda: True)
    mirrors = JournalMirrors(tmp_path / "journals", Hearing(), dispatch=dispatch)
    for key in keys:
        pending.keep(PendingRun(tenant="", key=key, request=ExtractRequest(text="Anna works.", ontology_id="company")))

        async def is_open(key=key):
            asked[key] += 1
            return pending.has("", key)

        await mirrors.enter("", key, RunObjects(objects, tenant=""), is_open=is_open)
    async with asyncio.timeout(30):
        while len(asked) < len(keys):
            await asyncio.sleep(0.01)
        pending.done("", keys[7])
        while not mirrors.is_over("", keys[7]):
            await asyncio.sleep(0.01)
    assert not mirrors.is_over("", keys[8])
    # The run that ended once more; the others, of which everything was heard, not again.
    assert asked == {key: 2 if key == keys[7] else 1 for key in keys}
    for key in keys:
        await mirrors.leave("", key)
    await mirrors.close()
    await dispatch.close()

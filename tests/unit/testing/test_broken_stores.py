"""The conformance suite rejects every planted defect by name, and nothing that is sound."""

import pytest

from sameas.stores.memory import MemoryBackend
from sameas.testing import examine
from sameas.testing.broken import BROKEN, suite_for


def test_there_are_enough_planted_defects():
    assert len(BROKEN) >= 12


@pytest.mark.parametrize("backend", BROKEN, ids=lambda backend: backend.__name__)
def test_broken_store_is_rejected_by_name(backend):
    failures = examine(suite_for(backend))
    assert set(backend.caught_by) <= set(failures), f"caught only by {sorted(failures)}"


def test_sound_store_passes():
    assert examine(suite_for(MemoryBackend)) == {}

import pytest

from tests.unit.collections.press import collections_in, new_collection


@pytest.fixture
def collections(tmp_path):
    with collections_in(tmp_path) as opened:
        yield opened


@pytest.fixture
def collection(collections):
    made = new_collection(collections)
    yield made
    assert made.check() == []

"""What the documents show works as it stands there."""

import re
from pathlib import Path

import pytest

from sameas.once.store import AsyncStore
from sameas.stores.memory import MemoryBackend
from sameas.testing import examine
from tests.shared_data import missing

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_somebody_elses_store_is_examined_with_the_documented_lines():
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "conformance.md").read_text(), re.DOTALL)
    (shown,) = [block for block in blocks if "StoreConformance" in block]
    assert len([line for line in shown.splitlines() if line.strip()]) == 5
    names = {"MyBackend": MemoryBackend}
    exec(shown, names)
    suite = names["TestMyStore"]
    assert examine(suite) == {}

    class TestMyStoreForTasks(suite):
        def open(self):
            return AsyncStore(MemoryBackend())

    assert examine(TestMyStoreForTasks) == {}


def test_what_is_missing_skips_on_a_laptop_and_fails_in_ci(monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="a server is not available"):
        missing("a server")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="a server is not available"):
        missing("a server")

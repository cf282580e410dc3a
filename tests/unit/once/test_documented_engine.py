"""What docs/engine.md shows works as it stands there, and it names every option, field and error."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from sameas import Policy
from sameas.once import errors
from sameas.once.call_builder import Options
from sameas.once.decorator import OnceOptions

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "engine.md").read_text("utf-8")
SHOWN = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def section(title):
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def unnamed(title, names):
    return [name for name in names if f"`{name}`" not in section(title)]


@pytest.fixture
def names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    places = {"__name__": "documented"}
    for block in SHOWN:
        exec(compile(block, "docs/engine.md", "exec"), places)
    yield places
    places["engine"].close()


def test_the_samples_work_one_after_the_other(names):
    assert names["charge"].record({"order": 1}).was_replay
    assert names["charge"]({"order": 1}) == names["Receipt"]("R-1", 12.5)
    assert names["engine"].run_many(None, names["orders"], scope="ship") == ["shipped 1", "shipped 2"]
    assert names["engine"].begin(scope="report", key="2026-11").result == "the report"
    assert names["engine"].read("book", "order-1") is not None


def test_the_default_retention_is_said_with_the_first_sample():
    assert "for 24 hours" in SHOWN[0]
    assert "**24 hours**" in PAGE.partition("\n## ")[0]
    readme = (Path(__file__).resolve().parents[3] / "README.md").read_text("utf-8")
    assert "24 hours" in re.findall(r"```python\n(.*?)```", readme, re.DOTALL)[0]


def test_every_option_field_and_error_is_named():
    assert unnamed("Options of run and record", [*Options.__annotations__, "connection"]) == []
    assert unnamed("Options of once", OnceOptions.__annotations__) == []
    assert unnamed("Policies", [each.name for each in fields(Policy) if each.init]) == []
    assert unnamed("Errors", [name for name in errors.__all__ if name != "StoreError"]) == []


def test_the_defaults_that_are_said_are_those_in_force():
    policy = Policy()
    assert (policy.lease, policy.retention, policy.wait_for, policy.max_waiters) == (30, 24 * 3_600, 60, 16_384)
    assert (policy.retry_window, policy.hand_in_for, policy.on_busy, policy.on_unstored) == (300, None, "wait", "raise")
    assert policy.former_keys
    assert policy.keep_errors == ()

"""What the control services signal becomes the events that are specified."""

import pytest

from sameas.extraction.events import events
from sameas.extraction.events.bus import Bus
from sameas.extraction.events.journal import MemoryJournal
from sameas.extraction.extractors.prompted.telling import announce
from sameas.llm import signals


@pytest.mark.parametrize(
    ("signal", "kind", "fields"),
    [
        (
            signals.RateLimited(run_id="r", wait_ms=200, reason="tokens", asked_by_server=True),
            events.RateLimited,
            {"wait_ms": 200, "reason": "tokens", "asked_by_server": True},
        ),
        (
            signals.BudgetWarning(stage="total", used=80, limit=100, message="most is used"),
            events.BudgetWarning,
            {"used": 80, "limit": 100},
        ),
        (
            signals.Retrying(stage="grounding", attempt=2, wait_ms=50, code="server", message="500"),
            events.ErrorRecoverable,
            {"stage": "grounding"},
        ),
        (signals.CircuitOpened(failures=5, retry_after_ms=120_000), events.ErrorRecoverable, {"stage": None}),
        (
            signals.MemoHit(stage="grounding", model="m", tokens=7),
            events.CacheHit,
            {"source": "model_call", "items": 7},
        ),
        (signals.CircuitClosed(), None, {}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_signal_becomes_its_event(signal, kind, fields) -> None:
    journal = MemoryJournal()
    announce(signal, Bus("r", journal=journal))
    found = list(journal.read())
    assert [type(event) for event in found] == ([] if kind is None else [kind])
    for name, value in fields.items():
        assert getattr(found[0], name) == value

"""Every relation rests on characters of the text."""

import pytest

from sameas.extraction.graph.grounding import Grounded, GroundingSettings, ground
from sameas.extraction.graph.model import Claim, Mention, Rejection
from sameas.extraction.text.chunking import Chunk
from sameas.extraction.text.document import Span

TEXT = "Alice Stone rose early. She walked far. The sun shone. It rained. Acme opened."
CHUNK = Chunk(0, 0, len(TEXT), TEXT)


def claim(subject: str, object: str, evidence: Span) -> Claim:
    ends = [Mention(TEXT.index(name), TEXT.index(name) + len(name), name) for name in (subject, object)]
    return Claim(ends[0], "http://e/p", ends[1], evidence)


def test_evidence_that_holds_both_ends_grounds_a_claim() -> None:
    said = claim("Alice Stone", "early", Span(0, 23))
    assert ground(CHUNK, said, settings=GroundingSettings()) == Grounded(said, "grounded")


@pytest.mark.parametrize("evidence", [Span(3, 5), Span(0, 0), Span(-4, 9), Span(0, 9999), Span(30, 20)])
def test_evidence_that_misses_an_end_is_widened_and_marked(evidence: Span) -> None:
    outcome = ground(CHUNK, claim("Alice Stone", "far", evidence), settings=GroundingSettings())
    assert isinstance(outcome, Grounded)
    assert outcome.status == "unverified"
    assert outcome.claim.evidence == Span(0, 39)


def test_or_it_is_dropped_where_so_set() -> None:
    outcome = ground(CHUNK, claim("Alice Stone", "far", Span(3, 5)), settings=GroundingSettings(unverified="drop"))
    assert isinstance(outcome, Rejection)
    assert outcome.code == "no_evidence"


def test_ends_too_far_apart_are_refused_whatever_the_evidence() -> None:
    outcome = ground(CHUNK, claim("Alice Stone", "Acme", Span(0, len(TEXT))), settings=GroundingSettings())
    assert isinstance(outcome, Rejection)
    assert outcome.code == "evidence_too_far"


def test_no_sentence_at_all_is_no_setting() -> None:
    with pytest.raises(ValueError, match="sentence"):
        GroundingSettings(sentences=0)

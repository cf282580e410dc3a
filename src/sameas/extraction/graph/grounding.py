"""Every relation rests on characters of the text: its subject, its object, and the words that connect them.

Rule: a relation is grounded if its evidence is a stretch of the chunk that holds both ends. Evidence that
misses an end is widened to the sentences of both and the relation is marked unverified, or dropped where so
set. Ends too far apart are refused: more sentences than is set, or than the extractor read together.
"""

from typing import Literal, TypeAlias

import msgspec

from sameas.extraction.graph.model import Claim, Rejection, RejectionCode, RelationStatus
from sameas.extraction.text.chunking import Chunk, find_sentence, most_sentences
from sameas.extraction.text.document import Span

UnverifiedPolicy: TypeAlias = Literal["mark", "drop"]


class GroundingSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is done with a relation whose evidence does not hold both ends, and how far apart ends may be."""

    unverified: UnverifiedPolicy = "mark"
    sentences: int = 3

    def __post_init__(self) -> None:
        if self.sentences < 1:
            raise ValueError("grounding needs at least one sentence")


class Grounded(msgspec.Struct, frozen=True):
    """A claim with evidence that holds both of its ends."""

    claim: Claim
    status: RelationStatus


def ground(chunk: Chunk, claim: Claim, *, settings: GroundingSettings) -> Grounded | Rejection:
    """The claim tied to its evidence, or why it cannot be."""
    subject, target, evidence = claim.subject.span, claim.object.span, claim.evidence
    begin, end = min(subject.start, target.start), max(subject.end, target.end)
    inside = 0 <= evidence.start < evidence.end <= len(chunk.text)
    is_held = inside and evidence.covers(subject) and evidence.covers(target)
    reach = max(settings.sentences, claim.reach)
    # To find the sentences of a chunk takes longer than everything else here, and seldom do they matter.
    if is_held and chunk.text[begin].isalnum() and most_sentences(chunk.text, begin, end) <= reach:
        return Grounded(claim, "grounded")
    first = find_sentence(chunk.sentences, begin)
    last = find_sentence(chunk.sentences, end - 1)
    if last - first + 1 > reach:
        return refusal(claim, "evidence_too_far")
    if is_held:
        return Grounded(claim, "grounded")
    if settings.unverified == "drop":
        return refusal(claim, "no_evidence")
    start = min(begin, chunk.sentences[first].start)
    end = max(end, chunk.sentences[last].end)
    return Grounded(msgspec.structs.replace(claim, evidence=Span(start, end)), "unverified")


def refusal(claim: Claim, code: RejectionCode) -> Rejection:
    """The claim as a line of the ledger."""
    start = min(claim.subject.start, claim.object.start)
    end = max(claim.subject.end, claim.object.end)
    return Rejection(start, end, code, "grounding", claim.subject.text, claim.predicate, claim.object.text)

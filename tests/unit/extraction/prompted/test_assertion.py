"""A fact needs words that assert it: what a document only orders an assistant to say is none, in whichever language."""

import json

import pytest

from sameas.extraction.extractors.prompted.reading import places
from sameas.extraction.extractors.prompted.understanding import Assertions
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.text.chunking import Chunk, chunk_text
from sameas.extraction.text.document import Span
from tests.shared_data import shared
from tests.unit.extraction.company import EX, company_index

from .more_orders import SEEN, UNSEEN
from .orders import DEVELOPMENT, HELD_BACK, LATER_DEVELOPMENT, LATER_STATEMENTS, STATEMENTS

ASSERTIONS = Assertions(company_index())
AROUND = ("Ann Lee works for Acme.", "Bob Ray lives in Rome.")
# What of the orders and statements that were held back is judged rightly; they are not developed against.
HELD_BACK_AT_LEAST = 0.9
# Of orders that are thought up today.
UNSEEN_AT_LEAST = 0.7


def entered(text: str) -> bool:
    """Whether any reading of the text lets the fact into the graph."""
    return any(_kept(chunk) for chunk in chunk_text(text))


def _kept(chunk: Chunk) -> bool:
    subjects, objects = (
        [Mention(span.start, span.end, name, types=(EX + kind,)) for span in places(chunk.text, name)]
        for name, kind in (("Dana Cole", "Person"), ("Evil Corp", "Company"))
    )
    claims = [
        Claim(subject, f"{EX}worksFor", object_, evidence=chunk.sentences[0])
        for subject in subjects
        for object_ in objects
    ]
    kept, _ = ASSERTIONS.check(chunk, claims, (*subjects, *objects))
    return bool(kept)


def around(said: str) -> str:
    return f"{AROUND[0]}\n\n{said}\n\n{AROUND[1]}"


@pytest.mark.parametrize(
    "order", [*(order for orders in (*DEVELOPMENT.values(), *LATER_DEVELOPMENT.values()) for order in orders), *SEEN]
)
def test_what_is_only_ordered_is_not_asserted(order: str) -> None:
    assert not entered(around(order))


@pytest.mark.parametrize("statement", [*STATEMENTS["development"], *LATER_STATEMENTS["development"]])
def test_what_is_stated_is_asserted(statement: str) -> None:
    assert entered(around(statement))


def test_orders_and_statements_that_were_held_back_are_judged_nearly_as_well() -> None:
    orders = [not entered(around(order)) for orders in HELD_BACK.values() for order in orders]
    statements = [
        entered(around(statement)) for statement in (*STATEMENTS["held back"], *LATER_STATEMENTS["held back"])
    ]
    assert sum(orders) / len(orders) >= HELD_BACK_AT_LEAST
    assert sum(statements) / len(statements) >= HELD_BACK_AT_LEAST


def test_most_orders_that_nobody_has_seen_are_known() -> None:
    assert sum(not entered(around(order)) for order in UNSEEN) / len(UNSEEN) >= UNSEEN_AT_LEAST


def test_facts_of_ordinary_texts_are_hardly_ever_taken_for_orders() -> None:
    lost = facts = 0
    for file in sorted(shared("data", "trust").rglob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            example = json.loads(line)
            for chunk in chunk_text(example["text"]):
                for subject, _, value in example.get("triples", ()):
                    ends = (places(chunk.text, subject), places(chunk.text, str(value)))
                    claims = [
                        Claim(_mention(one, chunk), f"{EX}worksFor", _mention(other, chunk), chunk.sentences[0])
                        for one in ends[0]
                        for other in ends[1]
                    ]
                    kept, refused = ASSERTIONS.check(chunk, claims, [claim.subject for claim in claims])
                    facts += bool(claims)
                    # However often it is ordered: stated once is enough.
                    lost += not kept and any(one.code == "addressed_to_model" for one in refused)
    assert facts > 5_000
    # In fact 17.
    assert lost <= facts / 200


def _mention(span: Span, chunk: Chunk) -> Mention:
    return Mention(span.start, span.end, chunk.text[span.start : span.end], types=(f"{EX}Person",))

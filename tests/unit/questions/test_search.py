"""Things are found by names that are nearly theirs, and shown with how they are connected."""

from pathlib import Path

import pytest

from sameas.collections.errors import EntityNotFoundError
from sameas.questions.desk import QuestionDesk
from sameas.questions.errors import QueryError
from sameas.questions.process import QueryLimits
from sameas.questions.runner import QueryRunner

from .conftest import Writer


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("Nordlicht Speicher", "Nordlicht Speicher"),
        ("nordlich speicher", "Nordlicht Speicher"),
        ("Speicher, Nordlicht", "Nordlicht Speicher"),
        ("weserstal", "Weserstahl AG"),
        ("Zu", "Zug"),
    ],
)
def test_a_name_with_a_slip_finds_the_thing(desk: QuestionDesk, typed: str, meant: str) -> None:
    assert desk.find(typed)[0].matched == meant


def test_what_nobody_is_called_finds_nothing(desk: QuestionDesk) -> None:
    assert desk.find("qqqqqqqq") == []
    assert desk.find("%") == []
    assert desk.find('"; DROP TABLE names') == []


def test_names_follow_what_changes(desk: QuestionDesk, writer: Writer) -> None:
    assert desk.find("Weserstahl")
    writer.collection.remove_name("two.txt")
    assert not desk.find("Weserstahl")


def test_a_path_is_the_fewest_facts_with_their_evidence(desk: QuestionDesk) -> None:
    found = desk.path("Nordlicht Speicher", "Weserstahl AG")
    assert [(one.subject_name, one.object_name, one.forward) for one in found] == [
        ("Nordlicht Speicher", "Helvetia Zellen", True),
        ("Helvetia Zellen", "Zug", True),
        ("Weserstahl AG", "Zug", False),
    ]
    assert {one.document_name for one in found[0].evidence} == {"one.txt", "two.txt"}
    assert desk.path("Nordlicht Speicher", "Weserstahl AG", longest=2) == []
    with pytest.raises(EntityNotFoundError):
        desk.path("Nordlicht Speicher", "Nobody")


def test_a_path_leads_past_a_thing_with_more_facts_than_one_answer_has(
    writer: Writer, runner: QueryRunner, tmp_path: Path
) -> None:
    for number in range(12):
        writer.put(f"hub-{number}.txt", (f"Firm {number}x/Company", "headquarters", "Zug/City"))
    limits = QueryLimits(seconds=5, rows=3)
    small = QuestionDesk(writer.collection, folder=tmp_path / "index", runner=runner, limits=limits)
    path = small.path("Firm 0x", "Weserstahl AG")
    assert [(one.subject_name, one.object_name) for one in path] == [("Firm 0x", "Zug"), ("Weserstahl AG", "Zug")]


def test_a_thing_has_no_path_to_itself(desk: QuestionDesk) -> None:
    with pytest.raises(QueryError, match="one thing"):
        desk.path("Weserstahl AG", "Weserstahl")


def test_a_page_has_all_that_is_known_of_a_thing(desk: QuestionDesk) -> None:
    page = desk.entity("Helvetia Zellen")
    assert [one.object_name for one in page.statements] == ["Zug"]
    assert [one.subject_name for one in page.mentioned_by] == ["Nordlicht Speicher"]

"""Examples are chosen by likeness and shown as turns, with replies in the numbers of the chunk's own menu."""

import json

from sameas.extraction.extractors.learning.examples import Example, Triple
from sameas.extraction.extractors.prompted.examples import ExampleBook, Shown
from sameas.extraction.extractors.prompted.questions import Questions
from sameas.extraction.extractors.prompted.reading import read_things
from sameas.extraction.extractors.prompted.settings import PromptSettings
from sameas.extraction.extractors.prompted.signatures import Signatures
from sameas.extraction.graph.model import Mention
from sameas.extraction.text.chunking import chunk_text
from sameas.ontology.focus import Focus, Focuser
from tests.unit.extraction.company import EX, company_index

INDEX = company_index()
MENU = Signatures(INDEX).menu(Focuser(INDEX).focus(""))
WORKS = Example("Zoe works for Hooli.", (Triple("Zoe", EX + "worksFor", "Hooli"),))
CAPITAL = Example("Rome is the capital of Italy.", (Triple("Italy", EX + "capital", "Rome"),))
BORN = Example("Ann was born on 2 May 1990.", (Triple("Ann", EX + "birthDate", "2 May 1990"),))
BOOK = ExampleBook([WORKS, CAPITAL, BORN], INDEX)


def replies(shown: list[Shown]) -> list[dict]:
    return [json.loads(one.reply) for one in shown]


def test_the_likest_come_first_and_the_unlike_not_at_all() -> None:
    assert BOOK.like("Bob works for Acme", count=2) == [WORKS]
    assert BOOK.like("Berlin is the capital of Germany", count=1) == [CAPITAL]
    assert BOOK.like("Zoe saw Rome, the capital of Italy", count=2) == [CAPITAL, WORKS]
    assert BOOK.like("xyz", count=3) == []


def test_an_example_of_entities_uses_the_numbers_of_the_menu() -> None:
    (reply,) = replies(BOOK.shown("Bob works for Acme", MENU, mode="two-stage", stage="entity_extraction", count=1))
    assert {one["name"]: MENU.class_at(one["type"]) for one in reply["entities"]} == {
        "Zoe": EX + "Person",
        "Hooli": EX + "Organization",
    }


def test_an_end_that_is_no_thing_is_a_value() -> None:
    (reply,) = replies(BOOK.shown("was born on", MENU, mode="two-stage", stage="entity_extraction", count=1))
    assert reply["values"] == ["2 May 1990"]


def test_an_example_of_relations_numbers_its_things() -> None:
    shown = BOOK.shown("Bob works for Acme", MENU, mode="two-stage", stage="relation_extraction", count=1)
    assert shown[0].things == (("Zoe", EX + "Person"), ("Hooli", EX + "Organization"))
    (reply,) = replies(shown)
    (fact,) = reply["relations"]
    assert (fact["subject"], MENU.property_at(fact["property"]), fact["object"]) == (1, EX + "worksFor", 2)


def test_an_example_of_relations_lists_the_values_that_a_question_would_list() -> None:
    """Were only the ends of its facts listed, a model would learn that the first two things are always related."""
    said = Example("Zoe, born on 2 May 1990, works for Hooli.", WORKS.triples)
    book = ExampleBook([said], INDEX)
    (shown,) = book.shown("Bob works for Acme", MENU, mode="two-stage", stage="relation_extraction", count=1)
    assert [name for name, _ in shown.things] == ["Zoe", "2 May 1990", "Hooli"]
    (fact,) = json.loads(shown.reply)["relations"]
    assert (fact["subject"], fact["object"]) == (1, 3)


def test_what_the_menu_does_not_offer_is_not_shown() -> None:
    narrow = Signatures(INDEX).menu(Focus(classes=(EX + "Person",), properties=(EX + "bornIn",)))
    assert BOOK.shown("Bob works for Acme", narrow, mode="joint", stage="entity_extraction", count=1) == []


def test_a_fact_whose_ends_do_not_stand_in_its_text_is_not_shown() -> None:
    """It would teach a model to give names that are then refused."""
    canonical = Triple("Zoe Maria Smith", EX + "worksFor", "Hooli")
    mixed = ExampleBook([Example(WORKS.text, (canonical, *WORKS.triples)), Example(CAPITAL.text, (canonical,))], INDEX)
    assert mixed.like("Bob works for Acme, the capital of robotics", count=2) == [WORKS]


def test_examples_are_earlier_turns_in_the_words_of_the_question_and_the_likest_is_the_last() -> None:
    questions = Questions(Signatures(INDEX), examples=BOOK, settings=PromptSettings(examples=2))
    things = read_things([Mention(0, 3, "Bob", types=(EX + "Person",))])
    system, *turns, question = questions.relations(chunk_text("Bob works for Acme since May.")[0], MENU, things)
    assert [turn.role for turn in turns] == ["user", "assistant", "user", "assistant"]
    assert BORN.text in turns[0].content
    assert WORKS.text in turns[2].content
    assert "\n1 Zoe, person\n2 Hooli, organization\n" in turns[2].content
    assert json.loads(turns[3].content)["relations"]
    assert "\n1 Bob, person\n" in question.content
    assert WORKS.text not in system.content + question.content


def test_the_digest_names_the_content() -> None:
    assert ExampleBook([], INDEX).digest == ""
    assert BOOK.digest != ExampleBook([WORKS], INDEX).digest
    assert BOOK.digest == ExampleBook([WORKS, CAPITAL, BORN], INDEX).digest

"""One entity for each thing, whatever the order of the mentions."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sameas.extraction.graph.model import Entity, Mention
from sameas.extraction.graph.resolution import resolve
from tests.unit.extraction.company import EX, company_index

INDEX = company_index()


def mentions(*said: tuple[str, str]) -> list[Mention]:
    return [
        Mention(number * 50, number * 50 + len(text), text, types=(EX + kind,) if kind else ())
        for number, (text, kind) in enumerate(said)
    ]


def entities(*said: tuple[str, str]) -> tuple[Entity, ...]:
    return tuple(resolve(mentions(*said), index=INDEX).entities)


def names(*said: tuple[str, str]) -> list[str]:
    return sorted(entity.name for entity in entities(*said))


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("Acme Ltd", "ACME Ltd.", "Company"),
        ("Alice Stone", "Stone, Alice", "Person"),
        ("Alice Stone", "Stone", "Person"),
        ("Alice Stone", "Alice", "Person"),
        ("Acme Robotics Ltd", "Acme", "Company"),
        ("International Business Machines", "IBM", "Company"),
        ("Wittgenstein Institute", "Witgenstein Institute", "Company"),
        ("Zürich", "Zurich", "City"),
    ],
)
def test_two_names_of_one_thing_are_joined(one: str, other: str, kind: str) -> None:
    (entity,) = entities((one, kind), (other, kind))
    assert len(entity.mentions) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("Anna Stone", "Person"), ("Anne Stone", "Person")),
        (("Alice Stone", "Person"), ("Bob Stone", "Person")),
        (("Paris", "City"), ("Paris", "Person")),
        (("New York", "City"), ("York", "City")),
        (("North Carolina", "Place"), ("South Carolina", "Place")),
        (("Acme 1", "Company"), ("Acme 2", "Company")),
        (("Stone", "Person"), ("Alice Stone", "Person")),
        (("Ivy Blue Moon", "Person"), ("IBM", "Company")),
    ],
)
def test_two_things_stay_two(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert len(entities(one, other)) == 2


def test_a_surname_belongs_to_the_nearest_bearer_before_it() -> None:
    found = mentions(("Alice Stone", "Person"), ("Stone", "Person"), ("Bob Stone", "Person"), ("Stone", "Person"))
    resolution = resolve(found, index=INDEX)
    owners = [resolution.entity_at((mention.start, mention.end)) for mention in found]
    assert owners[0] == owners[1] != owners[2] == owners[3]


def test_an_acronym_that_fits_two_names_is_joined_to_none() -> None:
    said = [("Ivory Bay Mills", "Company"), ("Iron Bridge Motors", "Company"), ("IBM", "Company")]
    assert len(entities(*said)) == 3


def test_what_stands_in_a_bracket_behind_a_name_is_short_for_it() -> None:
    company = (EX + "Company",)
    name = "Farmers and Merchants Bank of Duneld"
    short = Mention(len(name) + 2, len(name) + 5, "FMB", types=company)
    said = [Mention(0, len(name), name, types=company), short]
    assert [one.name for one in resolve(said, index=INDEX).entities] == [name]
    elsewhere = Mention(len(name) + 30, len(name) + 33, "FMB", types=company)
    assert len(resolve([said[0], elsewhere], index=INDEX).entities) == 2


def test_the_most_specific_class_is_kept() -> None:
    (entity,) = entities(("Globex", "Organization"), ("Globex", "Company"), ("Globex", ""))
    assert entity.types == (EX + "Company",)


def test_a_general_class_does_not_join_what_is_disjoint() -> None:
    found = entities(("Sterling", "Person"), ("Sterling", "Company"), ("Sterling", "Agent"))
    assert len(found) == 2
    assert sum(len(entity.mentions) for entity in found) == 3


def test_a_known_individual_gives_its_name_to_the_entity() -> None:
    said = mentions(("France", "Country"), ("Frankreich", "Country"), ("France", "Country"))
    known = [
        Mention(m.start, m.end, m.text, kind="individual", types=m.types, individual=EX + "France") for m in said[:2]
    ]
    (entity,) = resolve([*known, said[2]], index=INDEX).entities
    assert entity.individual == EX + "France"
    assert entity.aliases == ("Frankreich",)


def test_literals_are_not_things() -> None:
    literal = Mention(0, 4, "1999", kind="literal", value="1999", datatype="http://e/d")
    assert not resolve([literal], index=INDEX).entities


SAID = st.lists(
    st.tuples(
        st.sampled_from(
            "Alice Stone|Stone|Alice|Bob Stone|Acme Ltd|Acme|ACME|Acme Robotics|AR|Wittgenstein|Witgenstein|Paris".split(
                "|"
            )
        ),
        st.sampled_from(["Person", "Company", "Organization", "Agent", "City", ""]),
    ),
    max_size=14,
)


@given(SAID, st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_the_order_of_arrival_changes_nothing(said: list[tuple[str, str]], chance: random.Random) -> None:
    found = mentions(*said)
    shuffled = list(found)
    chance.shuffle(shuffled)
    one, other = resolve(found, index=INDEX), resolve(shuffled, index=INDEX)
    places = [(m.start, m.end) for m in found]
    assert list(one.entities) == list(other.entities)
    assert [one.entity_at(place) for place in places] == [other.entity_at(place) for place in places]
    assert {one.entity_at(place) for place in places} == {entity.id for entity in one.entities}
    assert sorted((m.start, m.end) for entity in one.entities for m in entity.mentions) == places
    assert len({entity.id for entity in one.entities}) == len(one.entities)


def test_a_name_far_away_does_not_change_an_id() -> None:
    before = {entity.name: entity.id for entity in entities(("Alice Stone", "Person"), ("Acme", "Company"))}
    after = {
        entity.name: entity.id
        for entity in entities(("Alice Stone", "Person"), ("Acme", "Company"), ("Bob Hill", "Person"))
    }
    assert before.items() <= after.items()


def test_twenty_thousand_mentions_take_under_three_seconds() -> None:
    chance = random.Random(5)
    parts = "an bel cor dan el far gen hol is jor kal lem mor nis or pel quin ros sten".split()

    def word() -> str:
        return "".join(chance.choice(parts) for _ in range(3)).capitalize()

    said = [(f"{word()} {word()}" if number % 3 else word(), "Person") for number in range(20_000)]
    found = mentions(*said)
    began = time.process_time()
    resolve(found, index=INDEX)
    assert time.process_time() - began < 3


def test_many_names_that_differ_in_one_letter_are_not_compared_with_each_other() -> None:
    said = [(f"Wittgenst{chr(0x4E00 + number)}in", "Person") for number in range(5000)]
    began = time.process_time()
    assert len(entities(*said)) == 5000
    assert time.process_time() - began < 3


def test_a_name_without_a_class_joins_the_one_entity_of_its_normal_form() -> None:
    known = mentions(("Acme Ltd", "Company"), ("Alice Stone", "Person"))
    more = [Mention(900, 904, "ACME"), Mention(950, 957, "Unknown"), Mention(990, 995, "Stone")]
    joined = {entity.name: entity for entity in resolve(known, index=INDEX, untyped=more).entities}
    assert [said.start for said in joined["Acme Ltd"].mentions] == [0, 900]
    assert joined["Acme Ltd"].aliases == ("ACME",)
    assert [said.start for said in joined["Alice Stone"].mentions] == [50]
    assert set(joined) == {"Acme Ltd", "Alice Stone"}


def test_a_name_without_a_class_joins_nobody_where_two_have_it() -> None:
    known = mentions(("Paris", "Person"), ("Paris", "City"))
    resolution = resolve(known, index=INDEX, untyped=[Mention(900, 905, "Paris")])
    assert list(resolution.entities) == list(entities(("Paris", "Person"), ("Paris", "City")))
    assert len(resolution.entities) == 2
    assert not resolution.is_named((900, 905))

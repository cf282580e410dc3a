"""Which things of different documents are one: names, keys, neighbours and conflicts, in whatever order."""

import random

from bench.collections.holding import found as found_in
from bench.collections.holding import new_collection as generated_collection
from bench.collections.holding import put as put_written
from bench.collections.judging import judge, partition
from bench.collections.world import World
from sameas.extraction.graph.model import Entity
from tests.unit.collections.press import collections_in, company, ids, named, new_collection, person, put, says

ACME = company("Acme Ltd")


def test_the_same_name_and_its_forms_are_one_thing(collection):
    put(collection, "a", person("Dr. Alice Stone"))
    put(collection, "b", person("STONE, Alice"))
    put(collection, "c", company("Acme Ltd"))
    put(collection, "d", company("Acme"))
    assert [count for _, count in named(collection)] == [2, 2]


def test_an_alias_of_one_is_the_name_of_the_other(collection):
    put(collection, "a", company("International Widgets", "Widgetco"))
    put(collection, "b", company("Widgetco"))
    assert [count for _, count in named(collection)] == [2]


def test_initials_need_a_neighbour_in_common(collection):
    john, short = person("John Smith"), person("J. Smith")
    carl = person("Carl Young")
    put(collection, "a", john, ACME, carl, says(john, "worksFor", ACME))
    put(collection, "b", short)
    assert ("J. Smith", 1) in named(collection)
    (pair,) = collection.pairs()
    assert {pair.a.name, pair.b.name} == {"John Smith", "J. Smith"}
    assert 0.2 < pair.probability < 0.9
    put(collection, "b", short, ACME, says(short, "worksFor", ACME), says(short, "motto", "onwards"))
    put(collection, "c", john, ACME, says(john, "worksFor", ACME), says(john, "motto", "onwards"))
    assert ("John Smith", 3) in named(collection)
    assert collection.pairs() == []


def test_initials_that_fit_two_people_stay_apart(collection):
    john, jane, short = person("John Smith"), person("Jane Smith"), person("J. Smith")
    for name, who in (("a", john), ("b", jane), ("c", short)):
        put(collection, name, who, ACME, says(who, "worksFor", ACME), says(who, "motto", "onwards"))
    assert [name for name, _ in named(collection)] == ["Acme Ltd", "J. Smith", "Jane Smith", "John Smith"]
    assert len(collection.pairs()) == 2


def test_a_key_makes_one_of_two_names_and_a_class_is_not_in_its_way(collection):
    old, new = company("Tweeting Ltd"), company("Shouting Ltd")
    put(collection, "a", old, says(old, "register", "HRB 1"))
    put(collection, "b", new, says(new, "register", "HRB 1"))
    assert [count for _, count in named(collection)] == [2]
    one, other = person("Ann Berg"), person("Anna Lindberg")
    put(collection, "c", one, says(one, "badge", "7"), says(one, "office", "Paris"))
    put(collection, "d", other, says(other, "badge", "7"), says(other, "office", "Rome"))
    assert len(ids(collection, "Ann Berg")) == len(ids(collection, "Anna Lindberg")) == 1
    put(collection, "d", other, says(other, "badge", "7"), says(other, "office", "Paris"))
    assert len(ids(collection, "Ann Berg")) + len(ids(collection, "Anna Lindberg")) == 1


def test_namesakes_are_parted_by_a_functional_property_and_who_fits_both_goes_to_neither(collection):
    mary = person("Mary Poe")
    put(collection, "plain", mary)
    put(collection, "old", mary, says(mary, "born", "1950"))
    assert named(collection) == [("Mary Poe", 2)]
    put(collection, "young", mary, ACME, says(mary, "born", "1990"), says(mary, "worksFor", ACME))
    assert named(collection) == [("Acme Ltd", 1), ("Mary Poe", 1), ("Mary Poe", 1), ("Mary Poe", 1)]
    put(collection, "plain", mary, ACME, says(mary, "worksFor", ACME))
    assert named(collection) == [("Acme Ltd", 2), ("Mary Poe", 1), ("Mary Poe", 2)]
    collection.remove_name("old")
    assert named(collection) == [("Acme Ltd", 2), ("Mary Poe", 2)]


def test_a_thing_keeps_its_id_through_merges_and_splits(collection):
    one, other = company("Tweeting Ltd"), company("Shouting Ltd")
    put(collection, "a", one)
    put(collection, "b", other)
    (first,), (second,) = ids(collection, "Tweeting Ltd"), ids(collection, "Shouting Ltd")
    put(collection, "c", company("Tweeting Ltd", "Shouting Ltd"))
    assert len(collection.entities()) == 1
    page = collection.entity(second)
    assert (page.entity.id, page.redirected_from) == (first, second)
    collection.remove_name("c")
    assert ids(collection, "Tweeting Ltd") == [first]
    assert ids(collection, "Shouting Ltd") == [second]
    assert collection.entity(second).redirected_from == ""


def test_the_result_does_not_depend_on_the_order(tmp_path):
    world = World(80, seed=5)
    documents = list(world.documents(40, statements=10))
    truth = {(one.name, id_): thing for one in documents for id_, thing in one.truth.items()}
    results = set()
    for order in range(3):
        folder = tmp_path / str(order)
        folder.mkdir()
        collection = generated_collection(folder)
        for one in random.Random(order).sample(documents, len(documents)):
            put_written(collection, one)
        assert collection.check() == []
        found = found_in(collection)
        results.add((partition(found), _pairs(collection, found)))
        judged = judge(found, truth)
        assert judged.precision > 0.95
        assert judged.recall > 0.85
    assert len(results) == 1


def test_how_often_a_name_is_met_decides_the_same_whoever_came_first(tmp_path):
    documents = {
        "a": (person("Konou Meveder"), ACME),
        "b": (person("Konou Meeder"), ACME),
        "c": (person("Koaou Meveder"), ACME),
        "d": (person("Konou Meveder"), ACME),
    }
    assert len(_in_every_order(tmp_path, documents, orders=("abcd", "acdb", "dcba", "badc"))) == 1


def test_what_many_documents_name_is_put_together_the_same_whoever_came_first(tmp_path):
    full, short = person("John Smith"), person("J. Smith")
    documents = {f"{number:03}": (short, ACME) for number in range(30)}
    documents |= {
        "full": (full, ACME),
        "old": (full, says(full, "born", "1950")),
        "new": (full, says(full, "born", "1990")),
    }
    documents |= {f"of one name {number:03}": (full, company(f"{chr(97 + number % 6)}co Ltd")) for number in range(30)}
    names = sorted(documents)
    assert len(_in_every_order(tmp_path, documents, orders=(names, names[::-1], [*names[31:], *names[:31]]))) == 1


def _in_every_order(tmp_path, documents, *, orders):
    """What is found when documents, each of somebody at a company, come in these orders; each thing by its places."""
    found = set()
    for number, order in enumerate(orders):
        folder = tmp_path / str(number)
        folder.mkdir()
        with collections_in(folder) as opened:
            made = new_collection(opened)
            for name in order:
                who, *rest = documents[name]
                facts = [says(who, "worksFor", one) if isinstance(one, Entity) else one for one in rest]
                put(made, name, who, *(one for one in rest if isinstance(one, Entity)), *facts)
            assert made.check() == []
            groups = found_in(made)
            found.add((partition(groups), _pairs(made, groups)))
    return found


def test_random_adds_changes_and_removals_give_the_same_as_from_scratch(tmp_path):
    draw = random.Random(3)
    world = World(60, seed=6)
    documents = {one.name: one for one in world.documents(30, statements=8)}
    others = {one.name: one for one in world.documents(30, statements=8, seed=99)}
    (tmp_path / "a").mkdir()
    collection = generated_collection(tmp_path / "a")
    present = {}
    for name in list(documents)[:20]:
        present[name] = (documents[name], 0)
        put_written(collection, documents[name])
    for step in range(1, 21):
        name = draw.choice(list(documents))
        if name in present and draw.random() < 0.5:
            del present[name]
            collection.remove_name(name)
        else:
            present[name] = (draw.choice((documents, others))[name], step)
            put_written(collection, present[name][0], version=step)
    (tmp_path / "b").mkdir()
    scratch = generated_collection(tmp_path / "b")
    for one, version in present.values():
        put_written(scratch, one, version=version)
    assert collection.check() == []
    first, second = found_in(collection), found_in(scratch)
    assert partition(first) == partition(second)
    assert _pairs(collection, first) == _pairs(scratch, second)


def _pairs(collection, found):
    """The doubtful pairs with their probabilities, by what they are made of."""
    groups = {}
    for mention, entity in found.items():
        groups.setdefault(entity, set()).add(mention)
    with collection.reading() as reader:
        number = {id_: reader.resolve_id(id_)[0] for pair in reader.pairs() for id_ in (pair.a.id, pair.b.id)}
        return frozenset(
            (frozenset((frozenset(groups[number[pair.a.id]]), frozenset(groups[number[pair.b.id]]))), pair.probability)
            for pair in reader.pairs()
        )

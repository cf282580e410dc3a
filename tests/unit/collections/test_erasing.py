"""Erasing one person or thing: a canary is in no table and no file afterwards, and does not come back."""

from sameas.collections import Source
from tests.unit.collections.press import company, named, person, put, says

CANARY, ACME, WANDA = person("Zaphod Canary", "Zaph"), company("Acme Ltd"), person("Wanda Fish")


def _sightings(folder):
    found = {}
    for file in folder.iterdir():
        data = file.read_bytes().lower()
        if b"canary" in data or b"zaph" in data:
            found[file.name] = data.count(b"canary") + data.count(b"zaph")
    return found


def test_a_canary_is_nowhere_after_it_was_erased(collection, tmp_path):
    put(collection, "a", CANARY, ACME, says(CANARY, "worksFor", ACME))
    put(collection, "b", WANDA, ACME, says(WANDA, "worksFor", ACME, quote="Wanda and Zaphod Canary work for Acme."))
    put(collection, "c", WANDA, CANARY, says(WANDA, "motto", "I am Zaphod Canary"), says(CANARY, "born", "1950"))
    put(collection, "Zaphod-Canary.txt", ACME)
    put(collection, "d", person("Z. Canary"))
    collection.note_failure(Source(name="torn.txt"), "Zaphod Canary's file is torn")
    short = next(one.id for one in collection.entities() if one.name == "Z. Canary")
    collection.decide("same", short, "Zaphod Canary", reason="Zaphod Canary told me")
    assert _sightings(tmp_path)
    done = collection.erase("Zaphod Canary", reason="asked for")
    assert (done.documents, len(done.removed)) == (5, 1)
    assert _sightings(tmp_path) == {}
    # The sentence that named both was Wanda's only evidence, so her fact went with it.
    assert named(collection) == [("Acme Ltd", 2), ("Wanda Fish", 2)]
    assert list(collection.statements()) == []
    assert collection.changes_since(0).erased
    assert collection.check() == []


def test_what_was_erased_does_not_come_back_with_a_later_document(collection, tmp_path):
    put(collection, "a", CANARY, ACME, says(CANARY, "worksFor", ACME))
    collection.erase("Zaphod Canary")
    put(collection, "e", CANARY, ACME, WANDA, says(CANARY, "worksFor", ACME), says(WANDA, "worksFor", ACME))
    assert [name for name, _ in named(collection)] == ["Acme Ltd", "Wanda Fish"]
    assert len(list(collection.statements())) == 1
    assert _sightings(tmp_path) == {}


def test_what_comes_while_runs_are_deleted_is_erased_too_and_its_run_is_told_first(collection, tmp_path):
    put(collection, "a", CANARY, ACME, says(CANARY, "worksFor", ACME), run="run-a")
    told = []

    def delete_runs(planned):
        told.append(planned.runs)
        if len(told) == 1:
            put(collection, "b", CANARY, WANDA, ACME, says(WANDA, "worksFor", ACME), run="run-b")
            put(
                collection,
                "c",
                ACME,
                says(WANDA, "motto", "Ask Beeblebrox", quote="Beeblebrox knows."),
                WANDA,
                run="run-c",
            )
        if len(told) == 2:
            # It has another name by now, and a document that knows only that one is among those that were looked at.
            put(collection, "d", person("Zaphod Canary", "Beeblebrox"), run="run-d")

    done = collection.erase("Zaphod Canary", before=delete_runs)
    assert told == [("run-a",), ("run-a", "run-b"), ("run-a", "run-b", "run-c", "run-d")]
    assert (done.documents, set(done.runs)) == (4, {"run-a", "run-b", "run-c", "run-d"})
    assert _sightings(tmp_path) == {}
    assert not [file for file in tmp_path.iterdir() if b"beeblebrox" in file.read_bytes().lower()]

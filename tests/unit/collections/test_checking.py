"""`check` finds damage: each rule is broken once, and told."""

import pytest

from tests.unit.collections.press import collections_in, company, new_collection, person, put, says

BREAKING = {
    "nameless-documents": "DELETE FROM sameas_collection_sources",
    "lost-documents": "UPDATE sameas_collection_sources SET document = 999999",
    "document-counts": "UPDATE sameas_collection_documents SET claims = claims + 1",
    "node-atoms": "DELETE FROM sameas_collection_atoms WHERE id = (SELECT min(id) FROM sameas_collection_atoms)",
    "atom-counts": "UPDATE sameas_collection_atoms SET nodes = nodes + 1",
    "name-counts": "UPDATE sameas_collection_names SET uses = 7",
    "subject-atoms": "UPDATE sameas_collection_claims SET subject_atom = object_atom",
    "object-atoms": "UPDATE sameas_collection_claims SET object_atom = subject_atom",
    "atom-entities": "UPDATE sameas_collection_atoms SET entity = 0",
    "empty-entities": "UPDATE sameas_collection_atoms SET entity = (SELECT min(number) FROM sameas_collection_entities)",
    "merged-entities": "UPDATE sameas_collection_entities SET merged_into = 999999",
    "pairs": "UPDATE sameas_collection_pairs SET high = 999999",
    "keys": "UPDATE sameas_collection_keys SET atom = 999999",
    "statuses": "UPDATE sameas_collection_sources SET document = NULL",
    "counters": "UPDATE sameas_collections SET claims = claims + 1",
}


@pytest.mark.parametrize("code", BREAKING)
def test_each_kind_of_damage_is_found(tmp_path, code):
    with collections_in(tmp_path) as collections:
        collection = new_collection(collections)
        john, acme = person("John Smith"), company("Acme")
        put(collection, "a", john, acme, says(john, "worksFor", acme))
        put(collection, "b", person("J. Smith"))
        assert collection.check() == []
        with collections.database.transaction() as session:
            session._work.script("PRAGMA defer_foreign_keys = ON")
            session._work.execute(BREAKING[code].replace("UPDATE ", "UPDATE OR IGNORE "), {})
        assert code in {finding.code for finding in collection.check()}

"""Looking for damage: every rule that the rows of a collection obey, asked of the rows.

Rule: nothing is repaired here. A finding names the rule and the first rows that break it.
"""

from sameas.collections.model import Finding
from sameas.databases import Session

_SHOWN = 5
# The statement that finds what breaks a rule, and the rule.
_RULES = {
    "check_nameless_documents": "a document has at least one name",
    "check_lost_documents": "a name stands for a document that is there",
    "check_document_counts": "a document has as many entities and claims as it says",
    "check_node_atoms": "every entity of a document belongs to an atom",
    "check_atom_counts": "an atom is as often in documents as it says",
    "check_name_counts": "the names of an atom are used as often as it is",
    "check_subject_atoms": "a claim begins with the atom of its entity",
    "check_object_atoms": "a claim ends with the atom of its entity",
    "check_atom_entities": "every atom is a thing that is not merged",
    "check_empty_entities": "every thing is some atom",
    "check_merged_entities": "a merged id leads to a thing that is not merged",
    "check_pairs": "a pair is of two atoms that are there",
    "check_keys": "under a key are atoms that are there",
    "check_statuses": "a name that is complete stands for a document",
    "check_counters": "the collection has as many documents, things and claims as it says",
}


def check(session: Session, collection: int) -> list[Finding]:
    """What is wrong with a collection; nothing, if all is well."""
    found = []
    for statement, rule in _RULES.items():
        rows = session.run(statement, collection=collection)
        if rows:
            shown = "; ".join(", ".join(map(str, row)) for row in rows[:_SHOWN])
            more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
            found.append(
                Finding(code=statement.removeprefix("check_").replace("_", "-"), detail=f"{rule}: {shown}{more}")
            )
    return found

"""One change of a collection, in one transaction: as before, or as after, and nothing between.

Rule: whoever changes a collection holds its row until the transaction ends, so that two changes come one after the
other; what a change touches is resolved before it is committed.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from sameas.collections.atoms import Atoms
from sameas.collections.drafts import Draft, Node
from sameas.collections.resolution import Resolution
from sameas.collections.scoring import Trait
from sameas.collections.traits import Traits
from sameas.databases import Session

_TEXTS = msgspec.json.Decoder(tuple[str, ...])


class Changing:
    """The tables of one collection while it is changed. `finish` must be the last that is called."""

    def __init__(self, session: Session, collection: int, *, traits: Traits, revision: int, next_id: int) -> None:
        self.revision = revision
        self.session = session
        self.collection = collection
        self.atoms = Atoms(session, collection, next_id=next_id)
        self.resolution = Resolution(session, collection, self.atoms, traits=traits)
        self._documents = 0
        self._claims = 0
        self._changed_documents: set[str] = set()

    def add_document(self, digest: str, draft: Draft, *, run: str, status: str, now: str, kind: str = "text") -> int:
        """Take a document in; its number."""
        document = self.atoms.new_id()
        self.session.run(
            "add_document", collection=self.collection, document=document, digest=digest, kind=kind, status=status,
            run=run, now=now, entities=len(draft.nodes), claims=len(draft.claims),
        )  # fmt: skip
        ids, placed = self._add_nodes(draft.nodes, document, digest)
        rows: list[dict[str, Any]] = []
        for claim in draft.claims:
            subject_node, subject_atom = ids[claim.subject]
            object_node, object_atom = ids[claim.object] if claim.object else (None, None)
            rows.append(
                {
                    "collection": self.collection, "claim": self.atoms.new_id(), "document": document,
                    "subject_node": subject_node, "subject_atom": subject_atom, "subject_token": claim.subject_token,
                    "predicate": claim.predicate, "object_node": object_node, "object_atom": object_atom,
                    "object_token": claim.object_token, "value": claim.value, "datatype": claim.datatype,
                    "unit": claim.unit, "confidence": claim.confidence, "status": claim.status,
                    "evidence": msgspec.json.encode(claim.evidence).decode(),
                }
            )  # fmt: skip
        self.session.run_many("add_claim", rows)
        self.atoms.count(placed, 1)
        for row in rows:
            said = row["predicate"], row["object_token"]
            self.atoms.note_connection(row["subject_atom"], ("says", *said), document=document)
            if row["object_atom"] is not None:
                about = row["predicate"], row["subject_token"]
                self.atoms.note_connection(row["object_atom"], ("is_said", *about), document=document)
        self._documents += kind == "text"
        self._claims += len(rows)
        self._changed_documents.add(digest)
        return document

    def _add_nodes(
        self, nodes: Sequence[Node], document: int, digest: str
    ) -> tuple[dict[str, tuple[int, int]], list[tuple[int, Node]]]:
        ids: dict[str, tuple[int, int]] = {}
        placed, rows = [], []
        for node in nodes:
            atom = self.atoms.place(node.key, node.family, node.signature, document=document, document_digest=digest)
            id_ = self.atoms.new_id()
            ids[node.local_id] = (id_, atom)
            placed.append((atom, node))
            rows.append(
                {
                    "collection": self.collection, "node": id_, "document": document, "atom": atom,
                    "local_id": node.local_id, "name": node.name, "individual": node.individual, "known": node.known,
                    "aliases": msgspec.json.encode(node.aliases).decode(),
                    "types": msgspec.json.encode(node.types).decode(),
                    "mentions": msgspec.json.encode(node.mentions).decode(),
                }
            )  # fmt: skip
        self.session.run_many("add_node", rows)
        return ids, placed

    def remove_document(self, document: int) -> str:
        """Take a document and all that only it says out; its digest."""
        row = self.session.one("document", collection=self.collection, document=document)
        assert row is not None, "a name led to a document that is not there"
        digest, *_, claims, kind = row
        uses = []
        for _, atom, local_id, name, individual, known, aliases, types, _ in self.session.run(
            "nodes_of_document", collection=self.collection, document=document
        ):
            self.atoms.touch(atom)
            uses.append((atom, stored_node(local_id, name, individual, known, aliases, types)))
        self.atoms.count(uses, -1)
        for statement in ("remove_claims", "remove_nodes", "remove_document"):
            self.session.run(statement, collection=self.collection, document=document)
        self._documents -= kind == "text"
        self._claims -= claims
        self._changed_documents.add(digest)
        return str(digest)

    def note_document(self, document: int) -> None:
        """A document has other names than before, though it says the same."""
        row = self.session.one("document", collection=self.collection, document=document)
        assert row is not None, "a name led to a document that is not there"
        self._changed_documents.add(row[0])

    def remember_former(self, document: int) -> dict[tuple[str, str], int]:
        """Which things the names of a document are, so that they keep their ids when it changes."""
        found: dict[tuple[str, str], int] = {}
        for row in self.session.run("nodes_of_document", collection=self.collection, document=document):
            atom = self.atoms.get(row[1])
            if atom is not None:
                found[atom.name, atom.family] = atom.entity
        return found

    def keep_ids(self, former: dict[tuple[str, str], int], document: int) -> None:
        """What a changed document names as before is the same thing as before, should nothing else say so."""
        for row in self.session.run("nodes_of_document", collection=self.collection, document=document):
            atom = self.atoms.get(row[1])
            if atom is not None and not atom.entity and former.get((atom.name, atom.family)):
                self.resolution.former.setdefault(atom.id, former[atom.name, atom.family])

    def finish(self) -> int:
        """Resolve what was touched and note the change; the new revision."""
        self.resolution.resolve()
        self.revision += 1
        noted = [("entity", id_) for id_ in self.resolution.changed]
        noted += [("document", digest) for digest in self._changed_documents]
        rows = [
            {"collection": self.collection, "kind": kind, "id": id_, "revision": self.revision}
            for kind, id_ in sorted(noted)
        ]
        self.session.run_many("note_change", rows)
        self.session.run(
            "advance", collection=self.collection, revision=self.revision, next_id=self.atoms.next_id,
            documents=self._documents, entities=self.resolution.more_entities, claims=self._claims,
        )  # fmt: skip
        return int(self.revision)


def stored_node(local_id: str, name: str, individual: str, known: str, aliases: str, types: str) -> Node:
    """A node as far as counting needs it."""
    no_traits: tuple[Trait, ...] = ()
    return Node(
        local_id=local_id, name=name, key="", family="", types=_TEXTS.decode(types), aliases=_TEXTS.decode(aliases),
        individual=individual, known=known, mentions=(), signature=no_traits,
    )  # fmt: skip

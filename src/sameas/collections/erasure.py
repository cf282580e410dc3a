"""Erasing one person or thing: its names, what is said of it, and every quotation that names it.

Rule: of what was erased nothing is kept but keyed digests of its names, so that no later document brings it back. A
document whose own name, path or title names it goes as a whole. What was derived from the rows (atoms, pairs,
decisions, changes) is made anew without it. The runs that read the documents are told to the caller, who deletes them.
"""

import hashlib
import hmac
from collections.abc import Iterable, Iterator

import msgspec

from sameas.collections.changes import Changing
from sameas.collections.drafts import Draft, Place, draft
from sameas.collections.model import Told
from sameas.collections.names import normal_name
from sameas.collections.traits import Traits
from sameas.databases import Session
from sameas.extraction.graph.model import Entity, Evidence, KnowledgeGraph, Relation, Value

_PLACES = msgspec.json.Decoder(tuple[Place, ...])
_TEXTS = msgspec.json.Decoder(tuple[str, ...])
# A longer name is looked for by its first words.
_MOST_WORDS = 6


class Erasure(Told, frozen=True, kw_only=True):
    """What was erased."""

    documents: int
    """Documents that said something of it."""
    claims: int
    evidence: int
    """Quotations that named it, of other facts too."""
    removed: tuple[str, ...] = ()
    """Digests of documents that went as a whole."""
    runs: tuple[str, ...] = ()
    """The runs that read those documents, to be deleted."""
    revision: int = 0


class Erased:
    """The names that must not come back, as keyed digests."""

    def __init__(self, session: Session, collection: int) -> None:
        ((_, salt, _),) = session.run("collection_ontology", collection=collection)
        self._salt = bytes(salt)
        self._digests = {row[0] for row in session.run("erased", collection=collection)}

    def __bool__(self) -> bool:
        return bool(self._digests)

    def digest(self, key: str) -> str:
        cut = key if key.startswith("source ") else " ".join(key.split()[:_MOST_WORDS])
        return hmac.new(self._salt, cut.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def add(self, keys: Iterable[str]) -> list[str]:
        new = [self.digest(key) for key in keys]
        self._digests.update(new)
        return new

    def is_source(self, name: str) -> bool:
        """Whether a document of this name was taken out for its name."""
        return bool(self._digests) and self.digest(f"source {name}") in self._digests

    def names(self, text: str) -> bool:
        """Whether a text names something that was erased."""
        words = normal_name(text).split() if len(text) < 200 else _plain_words(text)
        variants = {tuple(words), tuple(_plain_words(text))}
        return any(
            self.digest(" ".join(found[start : start + length])) in self._digests
            for found in variants
            for length in range(1, _MOST_WORDS + 1)
            for start in range(len(found) - length + 1)
        )

    def filtered(self, drafted: Draft) -> tuple[Draft, int]:
        """A draft without it, and how many quotations went."""
        if not self._digests:
            return drafted, 0
        gone = {node.local_id for node in drafted.nodes if self.names(node.name)}
        lost = 0
        nodes, claims = [], []
        for node in drafted.nodes:
            if node.local_id not in gone:
                mentions = tuple(place for place in node.mentions if not self.names(place[2]))
                aliases = tuple(alias for alias in node.aliases if not self.names(alias))
                traits = tuple(trait for trait in node.signature if not self.names(trait.token[2:]))
                lost += len(node.mentions) - len(mentions)
                nodes.append(msgspec.structs.replace(node, mentions=mentions, aliases=aliases, signature=traits))
        for claim in drafted.claims:
            if claim.subject in gone or claim.object in gone or (claim.value and self.names(claim.value)):
                lost += len(claim.evidence)
                continue
            evidence = tuple(place for place in claim.evidence if not self.names(place[2]))
            lost += len(claim.evidence) - len(evidence)
            # A fact goes with its last evidence.
            if evidence or not claim.evidence:
                claims.append(msgspec.structs.replace(claim, evidence=evidence))
        return Draft(tuple(nodes), tuple(claims)), lost


def erase(change: Changing, entity: int, *, traits: Traits, now: str) -> Erasure:
    """Erase a thing from a collection that is being changed; the caller finishes the change."""
    session, collection = change.session, change.collection
    atoms = change.atoms.of_entity(entity)
    names = {name for _, name, _ in change.atoms.names(atoms)}
    keys = {normal_name(name) for name in names} | {atom.name for atom in atoms}
    ids = {row[1] for row in session.run("merged_into", collection=collection, entity=entity)}
    row = session.one("entity_by_number", collection=collection, entity=entity)
    assert row is not None
    ids.add(row[1])
    erased = Erased(session, collection)
    for digest in erased.add(keys):
        session.run("add_erased", collection=collection, digest=digest, now=now, revision=change.revision + 1)
    hints = {max(key.split(), key=len) for key in keys}
    counts = {"documents": 0, "claims": 0, "evidence": 0}
    removed, runs = [], []
    for document, digest, status, run, kind in session.run("all_documents", collection=collection):
        sources = session.run("sources_of_document", collection=collection, document=document)
        names_it = any(
            _hinted(" ".join(source[:3] + source[5:6]), hints)
            and erased.names(" ".join((_as_words(source[0]), _as_words(source[2]), source[5])))
            for source in sources
        )
        graph, places = stored_graph(session, collection, document)
        if not names_it and not any(_hinted(text, hints) for text in _texts(graph)):
            continue
        drafted = draft(
            graph,
            traits=traits,
            locate=lambda start, end: places.get((start, end), (None, None)),  # noqa: B023
            known=kind == "known",
        )
        kept, lost = erased.filtered(drafted)
        if kept == drafted and not names_it:
            continue
        counts["documents"] += 1
        counts["claims"] += len(drafted.claims) - (0 if names_it else len(kept.claims))
        counts["evidence"] += lost
        if run:
            runs.append(run)
        former = change.remember_former(document)
        change.remove_document(document)
        if names_it:
            removed.append(digest)
            for source in sources:
                skipped = erased.digest(f"source {source[0]}")
                session.run("remove_source", collection=collection, name=source[0])
                session.run("add_erased", collection=collection, digest=skipped, now=now, revision=change.revision + 1)
            continue
        anew = change.add_document(digest, kept, run="", status=status, now=now, kind=kind)
        change.keep_ids({group: was for group, was in former.items() if was != entity}, anew)
        session.run("move_sources", collection=collection, document=document, to=anew, status=status)
    _clear_traces(session, collection, ids, keys, hints, erased)
    return Erasure(**counts, removed=tuple(removed), runs=tuple(runs))


def _clear_traces(
    session: Session, collection: int, ids: set[str], keys: set[str], hints: set[str], erased: Erased
) -> None:
    """Decisions about it, what failed to be read and names it, and lines of the audit."""
    gone = set()
    for row in session.run("decisions", collection=collection, before="", most=1 << 62):
        anchored = {name for _, _, name, _ in session.run("anchors", collection=collection, decision=row[0])}
        if ids & {row[2], row[3]} or anchored & keys or erased.names(row[7]):
            gone.add(row[0])
            session.run("remove_anchors", collection=collection, decision=row[0])
            session.run("remove_decision", collection=collection, id=row[0])
    for id_, _, _, _, detail in session.run("audit", collection=collection):
        if any(one in detail for one in ids | gone) or (_hinted(detail, hints) and erased.names(detail)):
            session.run("blank_audit", collection=collection, id=id_)
    for name, error, content in session.run("unread_sources", collection=collection):
        text = bytes(content or b"").decode("utf-8", "replace")
        if any(_hinted(one, hints) for one in (name, error, text)):
            session.run("remove_source", collection=collection, name=name)


def stored_graph(
    session: Session, collection: int, document: int
) -> tuple[KnowledgeGraph, dict[tuple[int, int], tuple[int | None, int | None]]]:
    """What a document says, as it was put in, and the page and paragraph of each place."""
    places: dict[tuple[int, int], tuple[int | None, int | None]] = {}

    def read(text: str) -> tuple[Evidence, ...]:
        found = _PLACES.decode(text)
        places.update({(start, end): (page, paragraph) for start, end, _, page, paragraph in found})
        return tuple(Evidence(start, end, quoted) for start, end, quoted, _, _ in found)

    entities, ids = [], {}
    for node, _, local_id, name, individual, _, aliases, types, mentions in session.run(
        "nodes_of_document", collection=collection, document=document
    ):
        ids[node] = local_id
        entities.append(
            Entity(local_id, name, _TEXTS.decode(types), _TEXTS.decode(aliases), read(mentions), individual)
        )
    relations = [
        Relation(
            ids[subject], predicate, "" if other is None else ids[other],
            Value(value, datatype, unit) if other is None else None, read(evidence), status=status,
            confidence=confidence,
        )
        for subject, predicate, other, value, datatype, unit, confidence, status, evidence in session.run(
            "plain_claims_of_document", collection=collection, document=document
        )
    ]  # fmt: skip
    return KnowledgeGraph(tuple(entities), tuple(relations)), places


def _texts(graph: KnowledgeGraph) -> Iterator[str]:
    for entity in graph.entities:
        yield entity.name
        yield from entity.aliases
        yield from (mention.text for mention in entity.mentions)
    for relation in graph.relations:
        if relation.value is not None:
            yield relation.value.value
        yield from (place.text for place in relation.evidence)


def _hinted(text: str, hints: set[str]) -> bool:
    """Whether a word of the names is in a text at all, which is quickly seen."""
    plain = " ".join(_plain_words(text))
    return any(hint in plain for hint in hints)


def _plain_words(text: str) -> list[str]:
    # The trailing letter keeps articles, titles and legal forms where they are.
    return normal_name(f"x {_as_words(text)} x").split()[1:-1]


def _as_words(text: str) -> str:
    return text.replace(",", " ").replace("_", " ").replace("-", " ").replace("/", " ").replace(".", " ")

"""Erasing one person or thing: its names, what is said of it, and every quotation that names it.

Rule: of what was erased nothing is kept but keyed digests of its names, so that no later document brings it back. A
document whose own name, path or title names it goes as a whole. What was derived from the rows (atoms, pairs,
decisions, changes) is made anew without it. The runs that read the documents are told to the caller, who deletes them.
"""

import hashlib
import hmac
from collections.abc import Iterable, Iterator

import msgspec

from sameas.collections.atoms import Atoms
from sameas.collections.changes import Changing
from sameas.collections.drafts import Draft, Place, draft
from sameas.collections.model import Told
from sameas.collections.names import normal_name
from sameas.collections.traits import Traits
from sameas.databases import Row, Session
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


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A document that names what is erased. `kept` is what it says without it, None where it goes as a whole."""

    document: int
    digest: str
    status: str
    run: str
    kind: str
    sources: tuple[Row, ...]
    kept: Draft | None
    claims: int
    evidence: int


class ErasurePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Which documents name it, as they and its names were at a revision."""

    revision: int
    keys: frozenset[str]
    documents: frozenset[int]
    runs: frozenset[str]


class _Target:
    """The names and ids of what is to be erased, and the documents that name it."""

    def __init__(self, session: Session, atoms: Atoms, collection: int, entity: int, *, traits: Traits) -> None:
        self._session = session
        self._collection = collection
        self._traits = traits
        members = atoms.of_entity(entity)
        names = {name for _, name, _ in atoms.names(members)}
        self.keys = {normal_name(name) for name in names} | {atom.name for atom in members}
        self.ids = {row[1] for row in session.run("merged_into", collection=collection, entity=entity)}
        row = session.one("entity_by_number", collection=collection, entity=entity)
        assert row is not None
        self.ids.add(row[1])
        self.erased = Erased(session, collection)
        self.digests = self.erased.add(self.keys)
        self.hints = {max(key.split(), key=len) for key in self.keys}

    def named_in(self, documents: Iterable[Row]) -> Iterator[Named]:
        """The documents that name it, of rows of `all_documents`."""
        for document, digest, status, run, kind in documents:
            sources = self._session.run("sources_of_document", collection=self._collection, document=document)
            as_a_whole = any(self._names_source(source) for source in sources)
            graph, places = stored_graph(self._session, self._collection, document)
            if not as_a_whole and not any(_hinted(text, self.hints) for text in _texts(graph)):
                continue
            drafted = draft(
                graph,
                traits=self._traits,
                locate=lambda start, end: places.get((start, end), (None, None)),  # noqa: B023
                known=kind == "known",
            )
            kept, lost = self.erased.filtered(drafted)
            if kept == drafted and not as_a_whole:
                continue
            yield Named(
                document=document, digest=digest, status=status, run=run, kind=kind, sources=tuple(sources),
                kept=None if as_a_whole else kept, evidence=lost,
                claims=len(drafted.claims) - (0 if as_a_whole else len(kept.claims)),
            )  # fmt: skip

    def _names_source(self, source: Row) -> bool:
        name, _, path, _, _, title, *_ = source
        return _hinted(" ".join((*source[:3], title)), self.hints) and self.erased.names(
            " ".join((_as_words(name), _as_words(path), title))
        )


def plan_erasure(session: Session, collection: int, entity: int, *, traits: Traits) -> ErasurePlan:
    """Look for the documents that name a thing; nothing is changed, and nobody waits."""
    ((*_, revision, _, _, _, _),) = session.run("collection_info", collection=collection)
    target = _Target(session, Atoms(session, collection, next_id=0), collection, entity, traits=traits)
    found = list(target.named_in(session.run("all_documents", collection=collection)))
    return ErasurePlan(
        revision=revision,
        keys=frozenset(target.keys),
        documents=frozenset(one.document for one in found),
        runs=frozenset(one.run for one in found if one.run),
    )


class PlanOutdated(Exception):
    """Something came while an erasure was planned that the plan must have, too."""


def erase(
    change: Changing, entity: int, *, plan: ErasurePlan, told: frozenset[str] | None, traits: Traits, now: str
) -> Erasure:
    """Erase a thing from a collection that is being changed; the caller finishes the change. `told` are the runs that
    are deleted already, if that is asked for.
    """
    session, collection = change.session, change.collection
    target = _Target(session, change.atoms, collection, entity, traits=traits)
    if target.keys != plan.keys:
        raise PlanOutdated
    revision = change.revision + 1
    for digest in target.digests:
        session.run("add_erased", collection=collection, digest=digest, now=now, revision=revision)
    changed = {
        digest for kind, digest in session.run("changes", collection=collection, revision=plan.revision)
        if kind == "document"
    }  # fmt: skip
    # Only of what changed since it was planned is it not known whether it names it.
    rows = [
        row
        for row in session.run("all_documents", collection=collection)
        if row[0] in plan.documents or row[1] in changed
    ]
    counts = {"documents": 0, "claims": 0, "evidence": 0}
    removed, runs = [], []
    found = list(target.named_in(rows))
    if told is not None and any(one.run and one.run not in told for one in found):
        raise PlanOutdated
    for one in found:
        counts["documents"] += 1
        counts["claims"] += one.claims
        counts["evidence"] += one.evidence
        if one.run:
            runs.append(one.run)
        former = change.remember_former(one.document)
        change.remove_document(one.document)
        if one.kept is None:
            removed.append(one.digest)
            for source in one.sources:
                skipped = target.erased.digest(f"source {source[0]}")
                session.run("remove_source", collection=collection, name=source[0])
                session.run("add_erased", collection=collection, digest=skipped, now=now, revision=revision)
            continue
        anew = change.add_document(one.digest, one.kept, run="", status=one.status, now=now, kind=one.kind)
        change.keep_ids({group: was for group, was in former.items() if was != entity}, anew)
        session.run("move_sources", collection=collection, document=one.document, to=anew, status=one.status)
    _clear_traces(session, collection, target.ids, target.keys, target.hints, target.erased)
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

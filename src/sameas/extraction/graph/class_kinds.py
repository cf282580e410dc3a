"""Which classes of an ontology are of people, organisations or places, by their labels and those above
them.
"""

from typing import Literal, TypeAlias

from sameas.ontology.index import OntologyIndex
from sameas.ontology.lexicon import name_of

ShapeKind: TypeAlias = Literal["person", "organisation", "place", "somewhere", ""]
"""`somewhere` stands where places stand (`in Acme`): a guess that contradicts nothing."""

_GENERAL: dict[ShapeKind, tuple[str, ...]] = {
    "person": ("person", "human", "people", "human being", "individual", "mensch", "personne", "persona"),
    "organisation": (
        "organization",
        "organisation",
        "company",
        "corporation",
        "business",
        "institution",
        "unternehmen",
    ),
    "place": (
        "place",
        "location",
        "geographic location",
        "geographical feature",
        "region",
        "settlement",
        "ort",
        "lieu",
    ),
}
_KIND_WORDS: dict[ShapeKind, str] = {
    "person": """
        person human people man woman author writer actor director artist musician politician scientist
        engineer player athlete employee character composer singer monarch officer mensch personne persona
    """,
    "organisation": """
        organization organisation company corporation business institution university school college agency
        party team club band studio label publisher manufacturer developer group bank museum unternehmen
    """,
    "place": """
        place location city country region settlement town village state province continent river lake
        mountain island sea ocean county district territory municipality planet airport station ort lieu
        stadt land
    """,
}
_WORDS: dict[str, ShapeKind] = {word: kind for kind, words in _KIND_WORDS.items() for word in words.split()}


class ClassKinds:
    """Kinds of an ontology's classes; answers are remembered."""

    def __init__(self, index: OntologyIndex) -> None:
        self._index = index
        self._own: dict[str, ShapeKind] = {iri: self._by_label(iri) for iri in index.classes}
        self._known: dict[str, ShapeKind] = {}
        self._general: dict[str, str] = {
            kind: found for kind in _GENERAL if (found := self._most_general(kind)) is not None
        }

    def kind_of(self, class_iri: str) -> ShapeKind:
        """The kind that a class's own label, or the nearest above it, speaks of."""
        known = self._known.get(class_iri)
        if known is None:
            above = sorted(self._index.class_tree.above(class_iri) - {class_iri})
            kinds = [kind for iri in (class_iri, *above) if (kind := self._own.get(iri, ""))]
            known = kinds[0] if kinds else ""
            self._known[class_iri] = known
        return known

    def class_for(self, kind: str) -> str:
        """The class that everything of a kind belongs to, if the ontology has one."""
        return self._general.get("place" if kind == "somewhere" else kind, "")

    def _by_label(self, iri: str) -> ShapeKind:
        words = _plain(name_of(self._index.classes[iri])).split()
        return next((_WORDS[word] for word in reversed(words) if word in _WORDS), "")

    def _most_general(self, kind: ShapeKind) -> str | None:
        labels = {
            _plain(text.value): one.iri
            for one in reversed(self._index.ontology.classes)
            for text in (*one.alt_labels, *one.labels)
        }
        named = {_plain(name_of(one)): one.iri for one in reversed(self._index.ontology.classes)}
        for word in _GENERAL[kind]:
            found = labels.get(word) or named.get(word)
            if found:
                return found
        return None


def _plain(label: str) -> str:
    return " ".join(label.lower().split())

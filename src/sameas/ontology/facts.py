"""Statements, arranged for reading: by predicate, then by subject. Order and repetition of the statements
do not matter.
"""

from collections.abc import Iterable, Iterator

from sameas.ontology import vocabulary as v
from sameas.ontology.model import Text
from sameas.ontology.parse import Node, Statement, Value


class Facts:
    """What the files say; a set of statements with two-step look-up."""

    def __init__(self, statements: Iterable[Statement]) -> None:
        self._by_predicate: dict[str, dict[str, list[Node]]] = {}
        self._types: dict[str, list[str]] = {}
        self._texts: dict[tuple[str, ...], dict[str, tuple[Text, ...]]] = {}
        for subject, predicate, node in dict.fromkeys(statements):
            self._by_predicate.setdefault(predicate, {}).setdefault(subject, []).append(node)
        for subject, nodes in self._by_predicate.get(v.TYPE, {}).items():
            for node in nodes:
                if isinstance(node, str):
                    self._types.setdefault(node, []).append(subject)

    def objects(self, subject: str, *predicates: str) -> Iterator[Node]:
        """What the subject has for any of the predicates."""
        for predicate in predicates:
            yield from self._by_predicate.get(predicate, {}).get(subject, ())

    def nodes(self, subject: str, *predicates: str) -> Iterator[str]:
        """The same, IRIs and blank nodes only."""
        return (node for node in self.objects(subject, *predicates) if isinstance(node, str))

    def iris(self, subject: str, *predicates: str) -> set[str]:
        """The same, IRIs only."""
        return {node for node in self.nodes(subject, *predicates) if not is_blank(node)}

    def texts(self, subject: str, *predicates: str) -> tuple[Text, ...]:
        """The literals, sorted, without blank ones."""
        table = self._texts.get(predicates)
        if table is None:
            table = self._texts[predicates] = self._text_table(predicates)
        return table.get(subject, ())

    def _text_table(self, predicates: tuple[str, ...]) -> dict[str, tuple[Text, ...]]:
        found: dict[str, set[Text]] = {}
        for predicate in predicates:
            for subject, nodes in self._by_predicate.get(predicate, {}).items():
                texts = found.setdefault(subject, set())
                texts.update(
                    Text(node.text, node.lang) for node in nodes if isinstance(node, Value) and node.text.strip()
                )
        return {subject: tuple(sorted(texts)) for subject, texts in found.items()}

    def having(self, predicate: str, *texts: str) -> set[str]:
        """Whose value for the predicate is a literal with one of these texts."""
        return {
            subject
            for subject, nodes in self._by_predicate.get(predicate, {}).items()
            if any(isinstance(node, Value) and node.text in texts for node in nodes)
        }

    def subjects(self, *predicates: str) -> Iterator[str]:
        """Who has something for any of the predicates, blank nodes too."""
        for predicate in predicates:
            yield from self._by_predicate.get(predicate, ())

    def of_type(self, *types: str) -> set[str]:
        """Whose `rdf:type` is any of these, blank nodes too."""
        return {subject for one in types for subject in self._types.get(one, ())}

    def types(self) -> Iterator[tuple[str, list[str]]]:
        """Each type with its members."""
        return iter(self._types.items())


def is_blank(node: str) -> bool:
    """Whether a node has no IRI."""
    return node.startswith("_:")

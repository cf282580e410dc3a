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
        found = {
            Text(node.text, node.lang)
            for node in self.objects(subject, *predicates)
            if isinstance(node, Value) and node.text.strip()
        }
        return tuple(sorted(found))

    def is_true(self, subject: str, predicate: str) -> bool:
        """Whether the subject has the boolean `true` there."""
        return any(
            isinstance(node, Value) and node.text in ("true", "1")
            for node in self.objects(subject, predicate)
        )

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

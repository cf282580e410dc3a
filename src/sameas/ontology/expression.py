"""Class expressions: unions, intersections, enumerations and restrictions, from blank nodes to plain names.

An expression becomes a `Constraint`, which has no blank nodes in it, so nobody ever has to give blank nodes
canonical names: that problem is exponential, this one is not. The work is counted all the same. Refused:
expressions that contain themselves, lists with two tails, cardinalities that are no numbers, and more work
than the limits allow.
"""

from collections.abc import Iterable

from sameas.ontology import vocabulary as v
from sameas.ontology.errors import OntologyExpressionError, OntologyTooLargeError
from sameas.ontology.facts import Facts, is_blank
from sameas.ontology.limits import Limits
from sameas.ontology.model import Constraint, Restriction, RestrictionKind
from sameas.ontology.parse import Node, Value

DEPTH = 100
MAX_CARDINALITY = 2**31
NOTHING: Constraint = ((),)
_QUANTIFIERS: tuple[tuple[str, RestrictionKind], ...] = ((v.SOME, "some"), (v.ALL, "all"))
_WRITE_OUT = "Write the class expression out as a tree, each blank node used once"


class ExpressionReader:
    """Reads the class expressions of one set of facts, and counts the work."""

    def __init__(self, facts: Facts, limits: Limits) -> None:
        self._facts = facts
        self._limits = limits
        self._steps = 0
        self._known: dict[str, Constraint] = {}
        self._open: list[str] = []

    def step(self, count: int = 1) -> None:
        """Count work; one budget for the whole ontology."""
        self._steps += count
        if self._steps > self._limits.expression_steps:
            raise OntologyTooLargeError(
                what=f"class expressions take more than {self._limits.expression_steps} steps",
                todo="Simplify what is made of blank nodes, or raise the limit expression_steps",
            )

    def items(self, head: Node) -> list[Node]:
        """The members of an RDF list."""
        found: list[Node] = []
        seen: set[str] = set()
        while head != v.NIL:
            self.step()
            if not isinstance(head, str) or head in seen:
                raise OntologyExpressionError(
                    what="a list runs in a circle or ends in a value", todo="Write it as ( a b c )"
                )
            seen.add(head)
            firsts = list(self._facts.objects(head, v.FIRST))
            rests = list(self._facts.objects(head, v.REST))
            if len(firsts) != 1 or len(rests) != 1:
                raise OntologyExpressionError(
                    what="a list has a member too few or a tail too many", todo="Write it as ( a b c )"
                )
            found.append(firsts[0])
            head = rests[0]
        return found

    def constraint(self, node: Node) -> Constraint:
        """The names that an expression comes down to."""
        self.step()
        if isinstance(node, Value):
            return ()
        if not is_blank(node):
            return () if node in v.TOP else NOTHING if node == v.NOTHING else ((node,),)
        if node not in self._known:
            if node in self._open:
                raise OntologyExpressionError(what="a class expression contains itself", todo=_WRITE_OUT)
            if len(self._open) >= DEPTH:
                raise OntologyTooLargeError(
                    what=f"class expressions are nested more than {DEPTH} deep", todo=_WRITE_OUT
                )
            self._open.append(node)
            self._known[node] = self._blank(node)
            self._open.pop()
        return self._known[node]

    def _blank(self, node: str) -> Constraint:
        facts = self._facts
        parts = [self.union(self.items(head)) for head in facts.objects(node, v.UNION)]
        for head in facts.objects(node, v.INTERSECTION):
            parts.extend(self.constraint(member) for member in self.items(head))
        parts.extend(self.constraint(base) for base in facts.nodes(node, v.ON_DATATYPE))
        for head in facts.objects(node, v.ONE_OF):
            members = self.items(head)
            datatypes = {member.datatype for member in members if isinstance(member, Value)}
            if datatypes and all(isinstance(member, Value) for member in members):
                parts.append((tuple(sorted(datatypes)),))
        return self.both(parts)

    def both(self, parts: Iterable[Constraint]) -> Constraint:
        """All of the parts at once."""
        groups = {group for part in parts for group in part}
        self.step(len(groups))
        return tuple(sorted(groups)) if () not in groups else NOTHING

    def union(self, members: Iterable[Node]) -> Constraint:
        """Any of the members."""
        result: Constraint | None = None
        for part in sorted({self.constraint(member) for member in members}):
            if part == ():
                return ()
            if result is None:
                result = part
                continue
            # Before the product, not after: it is what can be too much.
            size = sum(map(len, result)) * len(part) + sum(map(len, part)) * len(result)
            if size > self._limits.expression_names:
                raise OntologyTooLargeError(
                    what=f"a union comes down to more than {self._limits.expression_names} names",
                    todo="Name its parts as classes of their own",
                )
            self.step(size)
            result = tuple(sorted({tuple(sorted({*left, *right})) for left in result for right in part}))
        return NOTHING if result is None else result

    def enumerated(self, node: Node) -> list[Node]:
        """The members of an enumeration, literals and individuals, blank nodes left out."""
        if not isinstance(node, str):
            return []
        heads = self._facts.objects(node, v.ONE_OF)
        members = [member for head in heads for member in self.items(head)]
        return [member for member in members if isinstance(member, Value) or not is_blank(member)]

    def values(self, node: Node) -> set[str]:
        """The same as plain texts: a literal's text, an individual's IRI."""
        return {one.text if isinstance(one, Value) else one for one in self.enumerated(node)}

    def restrictions(self, node: str) -> list[Restriction]:
        """What a restriction says, or nothing if the node is none."""
        facts = self._facts
        found: list[Restriction] = []
        for name, inverse in self._on_property(node):
            self.step()
            found.extend(
                Restriction(property=name, inverse=inverse, kind=kind, filler=self.constraint(filler))
                for predicate, kind in _QUANTIFIERS
                for filler in facts.objects(node, predicate)
            )
            for value in facts.objects(node, v.HAS_VALUE):
                text = value.text if isinstance(value, Value) else value
                if isinstance(value, Value) or not is_blank(text):
                    found.append(Restriction(property=name, inverse=inverse, kind="value", value=text))
            filler = self.both(self.constraint(one) for one in facts.nodes(node, v.ON_CLASS, v.ON_DATA_RANGE))
            for predicate, (below, above) in v.CARDINALITIES.items():
                for count in facts.objects(node, predicate):
                    number = _cardinality(count, name)
                    found.append(
                        Restriction(
                            property=name,
                            inverse=inverse,
                            kind="cardinality",
                            filler=filler,
                            minimum=number if below else 0,
                            maximum=number if above else None,
                        )
                    )
        return found

    def _on_property(self, node: str) -> Iterable[tuple[str, bool]]:
        for target in self._facts.nodes(node, v.ON_PROPERTY):
            if not is_blank(target):
                yield target, False
            else:
                for name in sorted(self._facts.iris(target, *v.INVERSES)):
                    yield name, True


def _cardinality(node: Node, name: str) -> int:
    text = node.text.strip() if isinstance(node, Value) else ""
    if not (text.isascii() and text.removeprefix("+").isdigit() and int(text[:12]) <= MAX_CARDINALITY):
        raise OntologyExpressionError(
            what=f"a cardinality of {name} is {text or node!r}", todo="Give a whole number from 0 up"
        )
    return int(text)

"""Who is above whom. A circle of names above each other is one thing with several names.

Works for classes, properties and datatypes alike; without recursion, so that a chain of any length is safe.
"""

from collections.abc import Iterable, Mapping


class Hierarchy:
    """Names, what is directly above each, and what is equal to each."""

    def __init__(self, above: Mapping[str, Iterable[str]], equal: Mapping[str, Iterable[str]]) -> None:
        self._up: dict[str, set[str]] = {}
        for name, others in (*above.items(), *equal.items()):
            self._up.setdefault(name, set()).update(others)
            for other in others:
                self._up.setdefault(other, set())
        for name, others in equal.items():
            for other in others:
                self._up[other].add(name)
        self._group: dict[str, tuple[str, ...]] = {}
        self._find_circles()
        self._ancestors: dict[str, frozenset[str]] = {}
        self._down: dict[str, set[str]] = {}
        for name, others in self._up.items():
            for other in others:
                self._down.setdefault(other, set()).add(name)

    def same(self, name: str) -> tuple[str, ...]:
        """The name and all that are equal to it, sorted."""
        return self._group.get(name, (name,))

    def above(self, name: str) -> frozenset[str]:
        """The name, its equals and everything above them."""
        known = self._ancestors.get(name)
        if known is None:
            known = self._ancestors[name] = self._reach(name, self._up)
        return known

    def below(self, name: str) -> frozenset[str]:
        """The name, its equals and everything below them."""
        return self._reach(name, self._down)

    def parents(self, name: str) -> tuple[str, ...]:
        """What is directly above the name or its equals, sorted; equals stand for each other once."""
        return self._next(name, self._up)

    def children(self, name: str) -> tuple[str, ...]:
        """What is directly below the name or its equals, sorted; equals stand for each other once."""
        return self._next(name, self._down)

    def circles(self) -> tuple[tuple[str, ...], ...]:
        """The groups of more than one name, sorted."""
        return tuple(sorted({group for group in self._group.values() if len(group) > 1}))

    def _next(self, name: str, edges: Mapping[str, set[str]]) -> tuple[str, ...]:
        group = self.same(name)
        found = {self.same(other) for one in group for other in edges.get(one, ())}
        found.discard(group)
        return tuple(sorted(other[0] for other in found))

    def _reach(self, name: str, edges: Mapping[str, set[str]]) -> frozenset[str]:
        found = {name}
        waiting = [name]
        while waiting:
            more = edges.get(waiting.pop(), set()) - found
            found |= more
            waiting.extend(more)
        return frozenset(found)

    def _find_circles(self) -> None:
        """Tarjan's strongly connected components, with a stack of our own."""
        order: dict[str, int] = {}
        lowest: dict[str, int] = {}
        path: list[str] = []
        on_path: set[str] = set()
        for start in self._up:
            if start in order:
                continue
            work = [(start, iter(self._up[start]))]
            order[start] = lowest[start] = len(order)
            path.append(start)
            on_path.add(start)
            while work:
                name, others = work[-1]
                for other in others:
                    if other not in order:
                        order[other] = lowest[other] = len(order)
                        path.append(other)
                        on_path.add(other)
                        work.append((other, iter(self._up[other])))
                        break
                    if other in on_path:
                        lowest[name] = min(lowest[name], order[other])
                else:
                    work.pop()
                    if work:
                        lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[name])
                    if lowest[name] == order[name]:
                        self._close(name, path, on_path)

    def _close(self, name: str, path: list[str], on_path: set[str]) -> None:
        members = [path.pop()]
        while members[-1] != name:
            members.append(path.pop())
        group = tuple(sorted(members))
        on_path.difference_update(group)
        if len(group) > 1:
            for one in group:
                self._group[one] = group

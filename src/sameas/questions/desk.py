"""Where questions to a collection are asked: it brings the index up to date, has queries run, and reads the rows.

Blocking: asyncio code calls it in a thread.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

from sameas.collections.collection import Collection
from sameas.collections.model import EntityPage
from sameas.questions.answers import Answer
from sameas.questions.index import GraphIndex
from sameas.questions.limits import QueryLimits
from sameas.questions.paths import Connection, find_path
from sameas.questions.process import Asked
from sameas.questions.query_text import read_query
from sameas.questions.runner import QueryRunner
from sameas.questions.search import FoundName, find_names
from sameas.questions.vocabulary import prefixes_of


class QuestionDesk:
    """The questions of one caller to one collection. `folder` holds the indexes of all collections."""

    def __init__(
        self, collection: Collection, *, folder: Path, runner: QueryRunner, limits: QueryLimits | None = None
    ) -> None:
        self.collection = collection
        self.limits = limits or QueryLimits()
        self.index = GraphIndex(folder, collection)
        self._runner = runner

    @cached_property
    def prefixes(self) -> dict[str, str]:
        """What a query may use without saying it."""
        return prefixes_of(self.collection.ontology, base=self.collection.base)

    def query(
        self,
        text: str,
        *,
        limits: QueryLimits | None = None,
        default_graphs: tuple[str, ...] = (),
        named_graphs: tuple[str, ...] = (),
    ) -> Answer:
        """The answer to a SPARQL query that reads."""
        read_query(text)
        snapshot, revision = self.index.snapshot()
        asked = Asked(str(snapshot), text, self.prefixes, limits or self.limits, default_graphs, named_graphs)
        return replace(self._runner.run(asked), revision=revision)

    def find(self, text: str, *, limit: int = 20) -> list[FoundName]:
        """Things by a name that is nearly theirs, best first."""
        self.index.snapshot()
        return find_names(self.index.names, text, limit=limit)

    def entity(self, named: str) -> EntityPage:
        """All that is known of a thing, by its id, its IRI or its name."""
        return self.collection.entity(self.collection.find(named))

    def path(self, a: str, b: str, *, longest: int = 6) -> list[Connection]:
        """How two things are connected, by the fewest facts; empty where they are not."""
        return find_path(self, self.collection.find(a), self.collection.find(b), longest=longest)

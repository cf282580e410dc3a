"""What goes over the wire for questions to a collection."""

from sameas.questions.desk import Connection
from sameas.questions.index import FoundName
from sameas.server.schemas import Answer


class Hits(Answer, frozen=True, kw_only=True, rename="camel"):
    """Things whose names are near, best first."""

    hits: tuple[FoundName, ...]


class FoundPath(Answer, frozen=True, kw_only=True, rename="camel"):
    """The facts that lead from one thing to another; none where they are not connected."""

    path: tuple[Connection, ...]

"""What a question is refused for.

QuestionError
    QueryError          it cannot be asked so
    QueryLimitError     it takes more time, rows or memory than it may
    IndexBusyError      another process is building the index
    PublishError        another database did not take it
"""

from sameas.identity.errors import SameasError


class QuestionError(SameasError):
    """A question cannot be answered."""


class QueryError(QuestionError, ValueError):
    """The query is not SPARQL 1.1, or does more than read this collection."""


class QueryLimitError(QuestionError):
    """The query takes more than it may. `limit` is time, rows, bytes or memory."""

    def __init__(self, message: str, *, limit: str) -> None:
        super().__init__(message)
        self.limit = limit


class IndexBusyError(QuestionError):
    """Another process is building the index of this collection. Ask again in a moment."""


class PublishError(QuestionError):
    """Another database did not take what was sent to it."""

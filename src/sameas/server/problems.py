"""What the errors of extraction, ontologies and requests are to a client; the problems themselves are `web.problem`.

Rule: an error that is not named here is a 500 without details; its traceback goes to the log. No secret and no text of
a document is ever in a problem.
"""

from __future__ import annotations

from errno import EDQUOT, EFBIG, ENOSPC
from typing import Any

import msgspec

from sameas.extraction.run_folder import RunDamagedError
from sameas.extraction.runs import RunAmbiguousError, RunNotFoundError
from sameas.extraction.wishes import RunCancelledError
from sameas.identity.errors import NotCanonical
from sameas.identity.scope import ScopeError
from sameas.once.errors import SameasError
from sameas.ontology.errors import OntologyError, OntologyTooLargeError
from sameas.server.ontologies import ContentGone
from sameas.web import problem as web
from sameas.web.header import MalformedKey
from sameas.web.problem import MEDIA_TYPE

__all__ = ["MEDIA_TYPE", "TITLES", "Problem", "not_found", "problem_of"]

TITLES = {
    **web.TITLES,
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    415: "Unsupported Media Type",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
}

_FULL = (ENOSPC, EDQUOT, EFBIG)


class Problem(web.Problem):
    """A refusal of the service."""

    @property
    def body(self) -> bytes:
        return msgspec.json.encode(
            {
                "type": f"urn:sameas:problem:{self.code}",
                "title": TITLES.get(self.status, "Error"),
                "status": self.status,
                "detail": self.detail,
                **self.members,
            }
        )


def not_found(what: str, *, todo: str) -> Problem:
    return Problem(404, "not-found", f"there is no {what}; {todo}")


def problem_of(error: BaseException) -> Problem:
    """The problem that an error stands for; one nobody thought of is an internal one."""
    match error:
        case Problem():
            return error
        case SameasError() | ScopeError():
            same = web.problem_of(error)
            return Problem(
                same.status,
                same.code,
                same.detail,
                retry_after=same.retry_after,
                challenge=same.challenge,
                **same.members,
            )
        case RunNotFoundError():
            return Problem(404, "not-found", str(error))
        case RunAmbiguousError():
            return Problem(409, "run-ambiguous", "several runs have a key that begins so; give more of it")
        case RunCancelledError():
            return Problem(409, "run-cancelled", "the run was cancelled; extract again to go on with it")
        case RunDamagedError():
            return Problem(409, "run-damaged", f"the run is damaged: {error}; extract again to have it redone")
        case OntologyTooLargeError():
            return Problem(413, "ontology-too-large", error.what)
        case OntologyError():
            said = f"{error.what}. {error.todo}" if error.todo else error.what
            where: dict[str, Any] = {"line": error.line, "column": error.column} if error.line is not None else {}
            return Problem(422, "ontology-invalid", said, **where)
        case ContentGone():
            return Problem(503, "ontology-changing", "the ontology is being changed; ask again", retry_after=1.0)
        case OSError() if error.errno in _FULL:
            return Problem(503, "disk-full", "the disk of the service is full; nothing was begun", retry_after=30.0)
        case NotCanonical():
            return Problem(422, "not-canonical", f"the text has no canonical form: {error}")
        case MalformedKey():
            return Problem(400, "key-malformed", str(error))
        case msgspec.ValidationError():
            return Problem(422, "invalid", str(error))
        case msgspec.DecodeError() | UnicodeDecodeError() | RecursionError():
            return Problem(400, "malformed", "the body is not the JSON that is wanted; send an object in UTF-8")
        case _:
            return Problem(500, "internal", "an error that nobody thought of; the log has it under this trace")

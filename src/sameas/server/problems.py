"""What the errors of extraction, ontologies and requests are to a client; the problems themselves are `web.problem`.

Rule: an error that is not named here is a 500 without details; its traceback goes to the log. No secret and no text of
a document is ever in a problem.
"""

from __future__ import annotations

from errno import EDQUOT, EFBIG, ENOSPC
from typing import Any

import msgspec

from sameas.collections.errors import (
    CollectionError,
    CollectionExistsError,
    CollectionNotFoundError,
    DecisionNotFoundError,
    DocumentNotFoundError,
    EntityAmbiguousError,
    EntityNotFoundError,
    RoleRequiredError,
)
from sameas.extraction.runs.folder import RunDamagedError
from sameas.extraction.runs.library import RunAmbiguousError, RunNotFoundError
from sameas.extraction.runs.shared_runs import RunCancelledError
from sameas.identity.errors import NotCanonical
from sameas.llm.models import ModelError
from sameas.once.errors import SameasError
from sameas.ontology.errors import OntologyError, OntologyTooLargeError
from sameas.questions.errors import IndexBusyError, QueryLimitError, QuestionError
from sameas.server.tenants.ontologies import ContentGone
from sameas.server.tenants.ontology_files import SeveralVersions
from sameas.server.tenants.ontology_registry import NameTaken
from sameas.web import problem as web
from sameas.web.header import MalformedKey
from sameas.web.problem import MEDIA_TYPE, TITLES, Problem

__all__ = ["MEDIA_TYPE", "TITLES", "Problem", "not_found", "problem_of"]

_FULL = (ENOSPC, EDQUOT, EFBIG)


def not_found(what: str, *, todo: str) -> Problem:
    return Problem(404, "not-found", f"there is no {what}; {todo}")


def problem_of(error: BaseException) -> Problem:
    """The problem that an error stands for; one nobody thought of is an internal one."""
    match error:
        case Problem():
            return error
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
            where: dict[str, Any] = {"line": error.line, "column": error.column} if error.line is not None else {}
            return Problem(422, "ontology-invalid", error.said, **where)
        case NameTaken() | SeveralVersions():
            return Problem(409, "ontology-ambiguous", str(error))
        case CollectionExistsError():
            return Problem(409, "collection-exists", str(error))
        case EntityAmbiguousError():
            return Problem(409, "entity-ambiguous", str(error))
        case RoleRequiredError():
            return Problem(403, "role-required", str(error))
        case CollectionNotFoundError() | EntityNotFoundError() | DecisionNotFoundError() | DocumentNotFoundError():
            return Problem(404, "not-found", str(error))
        case CollectionError():
            return Problem(422, "collection-refuses", str(error))
        case QueryLimitError():
            return Problem(422, "query-too-large", str(error), limit=error.limit)
        case IndexBusyError():
            return Problem(503, "index-busy", str(error), retry_after=5.0)
        case QuestionError():
            return Problem(400, "query-invalid", str(error))
        case ContentGone():
            return Problem(503, "ontology-changing", "the ontology is being changed; ask again", retry_after=1.0)
        case ChildProcessError():
            return Problem(503, "process-ended", f"{error}; the run is taken up again", retry_after=5.0)
        case OSError() if error.errno in _FULL:
            return Problem(503, "disk-full", "the disk of the service is full; nothing was begun", retry_after=30.0)
        case ModelError():
            # What ends a run: the key, the name or the address of a model is wrong, which only operators can mend.
            return Problem(424, "model-refuses", str(error))
        case NotCanonical():
            return Problem(422, "not-canonical", f"the text has no canonical form: {error}")
        case MalformedKey():
            return Problem(400, "key-malformed", str(error))
        case SameasError():
            return web.problem_of(error)
        case msgspec.ValidationError():
            return Problem(422, "invalid", str(error))
        case msgspec.DecodeError() | UnicodeDecodeError() | RecursionError():
            return Problem(400, "malformed", "the body is not the JSON that is wanted; send an object in UTF-8")
        case _:
            return Problem(500, "internal", web.UNFORESEEN)

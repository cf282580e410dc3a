"""Errors for people: what happened, where, what to do; and the number that the program ends with.

Classes are known by their names, so that telling an error loads no module that the command did not need.
"""

from __future__ import annotations

import sys
from enum import IntEnum

from sameas.identity.errors import SameasError, one_stop


class ExitCode(IntEnum):
    """What the number that a command ends with means."""

    OK = 0
    FAILED = 1
    USAGE = 2
    PARTIAL = 3
    BAD_INPUT = 4
    UNAVAILABLE = 5
    NOT_CONFORMING = 6
    PORT_IN_USE = 7
    INTERRUPTED = 130
    TERMINATED = 143


class CliError(SameasError):
    """A command cannot do what was asked; `todo` says how it could."""

    def __init__(self, what: str, *, todo: str = "", code: ExitCode = ExitCode.BAD_INPUT) -> None:
        super().__init__(f"{what}. {todo}" if todo else what)
        self.code = code


_CODES = {
    "SettingsError": ExitCode.USAGE,
    "OntologyError": ExitCode.BAD_INPUT,
    "DocumentError": ExitCode.BAD_INPUT,
    "ExamplesError": ExitCode.BAD_INPUT,
    "SchemaError": ExitCode.BAD_INPUT,
    "ContainerError": ExitCode.BAD_INPUT,
    "ModelReplacedError": ExitCode.FAILED,
    "QuestionError": ExitCode.BAD_INPUT,
    "RunNotFoundError": ExitCode.BAD_INPUT,
    "RunAmbiguousError": ExitCode.BAD_INPUT,
    "RunDamagedError": ExitCode.FAILED,
    "JournalDamagedError": ExitCode.FAILED,
    "RoleRequiredError": ExitCode.USAGE,
    "CollectionError": ExitCode.BAD_INPUT,
    "InProgress": ExitCode.UNAVAILABLE,
    "StoreError": ExitCode.UNAVAILABLE,
    "PortInUseError": ExitCode.PORT_IN_USE,
    "ServiceUnreachable": ExitCode.UNAVAILABLE,
    "SameasError": ExitCode.FAILED,
}
# What is wrong with a model that no call was answered by.
_MODEL_CODES = {"auth": ExitCode.FAILED, "not_found": ExitCode.USAGE, "unreachable": ExitCode.UNAVAILABLE}
_NEEDED = {
    "typer": "extract",
    "rich": "extract",
    "pyoxigraph": "ontology",
    "numpy": "extract",
    "scipy": "learn",
    "httpx": "client",
    "redis": "redis",
    "psycopg": "postgres",
    "pymysql": "mysql",
    "asyncmy": "mysql",
    "mssql_python": "mssql",
    "sqlalchemy": "sql",
    "starlette": "server",
    "uvicorn": "server",
    "jwt": "auth",
    "pydantic_ai": "llm",
    "celery": "celery",
}
# From the worst to the best: several documents end with the worst code of any.
_SEVERITY = (
    ExitCode.TERMINATED, ExitCode.INTERRUPTED, ExitCode.FAILED, ExitCode.UNAVAILABLE, ExitCode.BAD_INPUT,
    ExitCode.PARTIAL, ExitCode.NOT_CONFORMING, ExitCode.OK,
)  # fmt: skip


def worst(codes: list[ExitCode]) -> ExitCode:
    return min(codes, key=_SEVERITY.index, default=ExitCode.OK)


def explain(error: BaseException) -> tuple[str, ExitCode]:
    """The message for people, and the exit code."""
    if isinstance(error, CliError):
        return str(error), error.code
    if type(error).__name__ == "ModelError":
        return str(error), _MODEL_CODES.get(getattr(error, "code", ""), ExitCode.FAILED)
    for kind in type(error).__mro__:
        if kind.__name__ in _CODES:
            return str(error), _CODES[kind.__name__]
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        extra = _NEEDED.get(package, "all")
        return f"the package {package!r} is not installed. Install sameas[{extra}]", ExitCode.FAILED
    if isinstance(error, OSError) and error.filename is not None:
        reason = error.strerror or type(error).__name__
        return f"{error.filename}: {reason.rstrip('.')}. Check the path and its permissions", ExitCode.BAD_INPUT
    return (
        one_stop(
            f"an unforeseen {type(error).__name__}: {error}. Run it again with --debug to see where it comes from"
        ),
        ExitCode.FAILED,
    )


def report(error: BaseException) -> ExitCode:
    """Tell an error on stderr."""
    message, code = explain(error)
    print(f"sameas: {message}", file=sys.stderr)
    return code

"""One tree of errors, in one place, whose messages are whole sentences."""

import ast
import builtins
import pickle
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import sameas
from sameas import errors
from sameas.cli.errors import CliError, explain
from sameas.errors import SameasError, StoreUnavailable

SOURCE = Path(sameas.__file__).parent
BUILT_IN = {
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
}
# Told from one part of a package to another, and caught there: no caller is given one.
SIGNALS = {
    "stores.postgres_connection.AnswerTimedOut",  # has to be an error of psycopg
    "collections.erasure.PlanOutdated",
    "server.bodies.ClientGone",
    "testing.search.Counterexample",  # an AssertionError: a test failed
    "web.capture.Disconnected",
    "web.capture.NoRoom",
    "web.capture.TooLarge",
    "web.encoding.NotPacked",
    "web.fingerprint.NotComparable",
    "web.handler_run.CutOff",  # an OSError: the server ends the connection
    "web.bodies.MalformedMultipart",
    "web.recording.NotKept",
    "web.shadow.SilentHandler",
}
# Of the programs, not of the libraries: they tell them to people or to clients of their own.
PROGRAMS = ("cli.", "server.")
# Under SameasError, and translated before a caller sees them.
INSIDE = {
    "extraction.extractors.prompted.replies.BadReplyError",
    "llm.adapters.CutStreamError",
    "llm.batches.BatchFailed",
    "stores.faults.Conflict",
    "stores.faults.Disconnected",
    "stores.faults.RowLocked",
}


def modules():
    for file in sorted(SOURCE.rglob("*.py")):
        name = ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        yield name, ast.parse(file.read_text("utf-8"))


@pytest.fixture(scope="module")
def trees():
    return dict(modules())


@pytest.fixture(scope="module")
def kinds(trees):
    classes = [
        (name, node) for name, tree in trees.items() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    ]
    known, found = set(BUILT_IN), {}
    while True:
        new = {
            f"{module}.{node.name}": module
            for module, node in classes
            if any(ast.unparse(base).rpartition(".")[2] in known for base in node.bases)
        }
        if len(new) == len(found):
            break
        found = new
        known |= {name.rpartition(".")[2] for name in found}
    named = {
        name: getattr(import_module(f"sameas.{module}"), name.rpartition(".")[2]) for name, module in found.items()
    }
    return {
        name: kind
        for name, kind in named.items()
        if issubclass(kind, BaseException) and not kind.__name__.startswith("_")
    }


def test_every_error_is_in_the_tree(kinds):
    assert len(kinds) > 60
    outside = {name for name, kind in kinds.items() if not issubclass(kind, SameasError)}
    assert outside == SIGNALS & kinds.keys()


def test_every_error_that_a_caller_is_given_is_in_sameas_errors(kinds):
    given = {
        kind.__name__: kind
        for name, kind in kinds.items()
        if name not in SIGNALS | INSIDE and not name.startswith(PROGRAMS)
    }
    assert sorted(given) == sorted(errors.__all__)
    assert {name: getattr(errors, name) for name in errors.__all__} == given


def test_the_tree_is_imported_without_the_packages_of_any_extra():
    program = "import sys, sameas.errors; print([m for m in ('pyoxigraph', 'numpy', 'httpx', 'pydantic_ai') if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_a_name_that_is_no_error_is_not_there():
    with pytest.raises(AttributeError, match="NoSuchError"):
        errors.NoSuchError  # noqa: B018


def test_old_bases_still_catch_what_they_caught():
    assert issubclass(errors.NotCanonical, ValueError)
    assert issubclass(errors.ScopeError, ValueError)
    assert issubclass(errors.SettingsError, ValueError)
    assert issubclass(errors.RunNotFoundError, LookupError)


def test_every_error_says_what_it_is(kinds):
    assert [name for name, kind in kinds.items() if not (kind.__doc__ or "").strip()] == []


def test_no_text_ends_a_sentence_twice_or_says_that_it_should_not_have_happened(trees):
    texts = [
        (name, node.value)
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    bad = re.compile(r"[a-z]\.\.(\s|$)|should(n't| not) have happened", re.IGNORECASE)
    assert [(name, text) for name, text in texts if bad.search(text)] == []


def test_the_full_stop_of_a_driver_is_not_said_twice():
    assert str(StoreUnavailable("Redis cannot answer now: Timeout.. Try again later.")) == (
        "Redis cannot answer now: Timeout. Try again later."
    )
    assert str(StoreUnavailable("waiting for ... ../sameas.db")) == "waiting for ... ../sameas.db"
    assert str(CliError("It is gone.", todo="Put it back")) == "It is gone. Put it back"
    assert str(errors.OntologySyntaxError("it ends early.", todo="Close it")) == "ontology: it ends early. Close it"
    assert explain(RuntimeError("It broke."))[0] == (
        "an unforeseen RuntimeError: It broke. Run it again with --debug to see where it comes from"
    )


def test_an_error_without_a_message_says_its_docstring():
    assert str(StoreUnavailable()) == "The store cannot answer now, so nothing was run; try again later."


def test_an_error_of_two_arguments_goes_through_pickle():
    again = pickle.loads(pickle.dumps(errors.NotCanonical("NaN is no number", "order.total")))
    assert str(again) == "order.total: NaN is no number"
    assert again.args == ("NaN is no number", "order.total")

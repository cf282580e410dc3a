"""`help()` says of every public call what it does, and of every public class or call what it raises."""

import ast
import importlib
import inspect
import re
import textwrap
from types import ModuleType
from typing import Any

import pytest

import sameas
from sameas.client import AsyncClient, Client
from sameas.client.collections import AsyncCollections, Collections

CLASSES = [sameas.Engine, sameas.AsyncEngine, sameas.IdempotentProcessor, sameas.AsyncIdempotentProcessor]
CLASSES += [sameas.OpenCollection, sameas.Result, Client, AsyncClient, Collections, AsyncCollections]
FUNCTIONS = [sameas.open_store, sameas.open_async_store, sameas.extract, sameas.aextract, sameas.open_collection]
FUNCTIONS += [sameas.compute_idempotency_key, sameas.compute_ontology_version, sameas.current_context]
# Those whose errors are those of the service, said once for all calls of a client.
OF_THE_CLASS = (Client, AsyncClient, Collections, AsyncCollections, sameas.OpenCollection, sameas.Result)


def calls_of(cls: type) -> list[str]:
    return [name for name, call in vars(cls).items() if inspect.isfunction(call) and not name.startswith("_")]


def says_what_it_raises(text: str | None) -> bool:
    return text is not None and any(word in text for word in ("raise", "Raise", "errors"))


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_call_of_a_class_says_what_it_does(cls: type) -> None:
    # `after_fork` is the engine's own: a child that was forked calls it.
    silent = [name for name in calls_of(cls) if not inspect.getdoc(getattr(cls, name)) and name != "after_fork"]
    assert calls_of(cls)
    assert silent == []


@pytest.mark.parametrize("cls", OF_THE_CLASS, ids=lambda cls: cls.__name__)
def test_a_class_says_what_its_calls_raise(cls: type) -> None:
    assert says_what_it_raises(cls.__doc__)


@pytest.mark.parametrize("cls", [sameas.Engine, sameas.AsyncEngine], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize(
    "name",
    ["run", "record", "run_many", "record_many", "begin", "once", "read", "find", "forget", "forget_where", "prune"],
)
def test_the_calls_of_an_engine_say_what_they_raise(cls: type, name: str) -> None:
    assert says_what_it_raises(inspect.getdoc(getattr(cls, name)))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_function_says_what_it_raises(function: object) -> None:
    assert says_what_it_raises(inspect.getdoc(function))


@pytest.mark.parametrize(
    ("tasks", "threads"), [(AsyncClient, Client), (AsyncCollections, Collections)], ids=["client", "collections"]
)
def test_a_client_for_tasks_says_what_its_twin_says(tasks: type, threads: type) -> None:
    assert set(calls_of(tasks)) == set(calls_of(threads))
    for name in calls_of(threads):
        assert inspect.getdoc(getattr(tasks, name)) == inspect.getdoc(getattr(threads, name))


PACKAGES = [importlib.import_module(f"sameas.{name}") for name in ("tenancy", "llm", "ontology", "web")]
TELLS = re.compile(r"[Rr]aise")


def exported(module: ModuleType) -> list[tuple[str, Any]]:
    found = [(name, getattr(module, name)) for name in module.__all__]
    return [(name, one) for name, one in found if callable(one) and not is_error(one) and not is_value(one)]


def is_error(one: object) -> bool:
    return inspect.isclass(one) and issubclass(one, BaseException)


def is_value(one: object) -> bool:
    """Data that nothing can be asked of and that anything can be put into; a name for a type."""
    if inspect.isclass(one):
        return not own_calls(one) and not raised_by(one, "__init__") and not raised_by(one, "__post_init__")
    return not inspect.isfunction(one)


def own_calls(cls: type) -> dict[str, Any]:
    return {name: getattr(cls, name) for name in vars(cls) if name[0] != "_" and inspect.isroutine(getattr(cls, name))}


def raised_by(owner: Any, name: str, seen: frozenset[str] = frozenset()) -> set[str]:
    """The errors that the text of a function, or of a method and of what it calls on itself, raises by their names."""
    found_there: Any = vars(owner).get(name) if inspect.isclass(owner) else owner
    function = inspect.unwrap(found_there)
    if not inspect.isfunction(function) or function.__module__ == "typing" or function.__code__.co_filename[0] == "<":
        return set()
    found: set[str] = set()
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        match node:
            case ast.Raise(exc=ast.Call(func=ast.Name(id=error))) if error[0].isupper():
                found.add(error)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=other)) if (
                inspect.isclass(owner) and other not in seen and other[0] == "_"
            ):
                found |= raised_by(owner, other, seen | {name, other})
    return found


@pytest.mark.parametrize("module", PACKAGES, ids=lambda module: module.__name__)
def test_every_public_call_of_a_package_says_what_it_raises(module: ModuleType) -> None:
    silent: list[str] = []
    for name, one in exported(module):
        of_all = inspect.getdoc(one) or ""
        if not TELLS.search(of_all) and not (inspect.isclass(one) and own_calls(one)):
            silent.append(name)
        for call in own_calls(one) if inspect.isclass(one) else ():
            if not TELLS.search(inspect.getdoc(getattr(one, call)) or "") and not TELLS.search(of_all):
                silent.append(f"{name}.{call}")
    assert silent == []


@pytest.mark.parametrize("module", PACKAGES, ids=lambda module: module.__name__)
def test_what_a_public_call_raises_by_name_is_in_its_help(module: ModuleType) -> None:
    untold: list[str] = []
    for name, one in exported(module):
        of_all = inspect.getdoc(one) or ""
        calls = ["__init__", "__post_init__", *own_calls(one)] if inspect.isclass(one) else [name]
        for call in calls:
            own = "" if call.startswith("__") or not inspect.isclass(one) else inspect.getdoc(getattr(one, call)) or ""
            untold += [f"{name}.{call}: {error}" for error in raised_by(one, call) if error not in own + of_all]
    assert untold == []

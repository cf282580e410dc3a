"""`help()` says of every public call what it does, and of every public class or call what it raises."""

import inspect

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

"""Threads and tasks have the same methods with the same parameters."""

import inspect
import re
from dataclasses import fields

import pytest

import sameas
from sameas import (
    AsyncEngine,
    AsyncIdempotentProcessor,
    Engine,
    IdempotentProcessor,
    Policy,
    open_async_store,
    open_store,
)
from sameas.client import AsyncClient, Client
from sameas.connections import StoreOptions
from sameas.once.call_builder import CallBuilder, Options
from sameas.once.decorator import AsyncBoundOnce, AsyncOnce, BoundOnce, Once, OnceOptions
from sameas.once.store import AsyncStore, Store
from sameas.stores import postgres, redis, sqlalchemy
from sameas.stores.memory import MemoryBackend
from sameas.stores.sqlite import SqlitePerformer
from sameas.tasks.celery import IdempotentTask
from sameas.web import IdempotencyMiddleware

PAIRS = [
    (Store, AsyncStore),
    (Engine, AsyncEngine),
    (IdempotentProcessor, AsyncIdempotentProcessor),
    (Once, AsyncOnce),
    (BoundOnce, AsyncBoundOnce),
]
# What only tasks have: how many run at once.
ONLY_TASKS = {"concurrency"}


def public(kind):
    return {
        name: member
        for name, member in vars(kind).items()
        if inspect.isfunction(member) and not name.startswith("_") and name != "after_fork"
    }


@pytest.mark.parametrize(("threads", "tasks"), PAIRS)
def test_public_methods_mirror_each_other(threads, tasks):
    assert list(public(threads)) == list(public(tasks))
    for name, method in public(threads).items():
        twin = public(tasks)[name]
        parameters = [p.replace(annotation=p.empty) for p in inspect.signature(method).parameters.values()]
        twins = [
            p.replace(annotation=p.empty)
            for p in inspect.signature(twin).parameters.values()
            if p.name not in ONLY_TASKS
        ]
        assert parameters == twins, name
        if name != "once":
            assert inspect.iscoroutinefunction(twin), name
            assert not inspect.iscoroutinefunction(method), name


@pytest.mark.parametrize(("threads", "tasks"), PAIRS)
def test_constructors_mirror_each_other(threads, tasks):
    def shown(kind):
        return [p.replace(annotation=p.empty) for p in inspect.signature(kind).parameters.values()]

    assert shown(threads) == shown(tasks)


def test_engines_show_the_same_of_themselves():
    def shown(engine):
        return {name for name in vars(engine) if not name.startswith("_")}

    assert shown(Engine(open_store("memory://"))) == shown(AsyncEngine(open_async_store("memory://")))


def documented(method, names):
    said = inspect.getdoc(method)
    return [name for name in names if not re.search(rf"\b{name}\b", said)]


@pytest.mark.parametrize("engine", [Engine, AsyncEngine])
def test_help_names_every_option(engine):
    taken = {name for name in inspect.signature(CallBuilder.call).parameters if name not in ("self", "work", "backend")}
    assert set(Options.__annotations__) == taken
    assert documented(engine.run, [*Options.__annotations__, "connection"]) == []
    assert documented(engine.once, OnceOptions.__annotations__) == []
    assert documented(engine.run_many, {"concurrency"} if engine is AsyncEngine else {"keys"}) == []
    assert documented(Policy, [each.name for each in fields(Policy) if each.init]) == []
    assert documented(engine if engine is Engine else Engine, inspect.signature(engine).parameters) == []


# What these do cannot fail.
RAISE_NOTHING = {"normalize_text"}


def test_help_says_of_every_call_what_it_raises():
    calls = {
        f"{kind.__name__}.{name}": method
        for kind in (
            Engine,
            AsyncEngine,
            IdempotentProcessor,
            AsyncIdempotentProcessor,
            Once,
            AsyncOnce,
            sameas.ProcessingRecord,
        )
        for name, method in public(kind).items()
        if name not in ("answer", "end_held") or kind is sameas.ProcessingRecord
    } | {
        name: getattr(sameas, name)
        for name in sameas.__all__
        if inspect.isfunction(getattr(sameas, name)) and name not in RAISE_NOTHING
    }
    calls |= {kind.__name__: kind for kind in (Policy, Client, AsyncClient, IdempotencyMiddleware, IdempotentTask)}
    silent = [
        name for name, call in calls.items() if not re.search("raise|Raise|errors are those", inspect.getdoc(call))
    ]
    assert silent == []


def test_options_of_stores_are_those_that_some_kind_of_store_takes():
    openers = (MemoryBackend, SqlitePerformer, redis.open_backend, postgres.open_backend, sqlalchemy.open_backend)
    taken = set().union(*(inspect.signature(opener).parameters for opener in openers)) - {"url", "path"}
    assert set(StoreOptions.__annotations__) == taken
    assert documented(StoreOptions, taken) == []


def test_both_kinds_of_store_open_from_the_same_urls(tmp_path):
    for url in ("memory://", f"sqlite:///{tmp_path}/a.db"):
        assert type(open_store(url).backend) is type(open_async_store(url).backend)

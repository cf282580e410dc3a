"""Threads and tasks have the same methods with the same parameters."""

import inspect

import pytest

from sameas import AsyncEngine, AsyncIdempotentProcessor, Engine, IdempotentProcessor, open_async_store, open_store
from sameas.once.decorator import AsyncOnce, Once
from sameas.once.store import AsyncStore, Store

PAIRS = [(Store, AsyncStore), (Engine, AsyncEngine), (IdempotentProcessor, AsyncIdempotentProcessor), (Once, AsyncOnce)]
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


def test_both_kinds_of_store_open_from_the_same_urls(tmp_path):
    for url in ("memory://", f"sqlite:///{tmp_path}/a.db"):
        assert type(open_store(url).backend) is type(open_async_store(url).backend)

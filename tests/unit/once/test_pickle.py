"""What goes to another process: errors whole, decorated functions by their names."""

import importlib
import pickle
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

import sameas
from sameas import (
    AsyncEngine,
    Engine,
    InProgress,
    KeyReused,
    OutcomeUnknown,
    ResultNotKept,
    SameasError,
    StoredFailure,
    StoreUnavailable,
    open_async_store,
    open_store,
)
from sameas.identity.errors import NotCanonical
from sameas.identity.scope import ScopeError
from sameas.once.errors import BatchFailed

engine = Engine(open_store("memory://"))
tasks = AsyncEngine(open_async_store("memory://"))


@engine.once(scope="double")
def double(number):
    return number * 2


@tasks.once(scope="triple")
async def triple(number):
    return number * 3


class Shop:
    @engine.once(scope="pay", key=lambda self, order: f"{order}")
    def pay(self, order):
        return f"paid {order}"


ERRORS = [
    InProgress(retry_after=2.5),
    KeyReused(fields=["total"]),
    StoredFailure("CardDeclined", "no money", expires_at=7),
    OutcomeUnknown(result={"charge": 1}),
    ResultNotKept(reason="an object"),
    StoreUnavailable("down", retry_after=3.0, maybe_applied=False),
    BatchFailed([1, ValueError("two")]),
    NotCanonical("is a set", "order.items"),
    ScopeError("no tenant", code="tenant-required", status=401),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_comes_through_whole(error):
    error.add_note("seen here")
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert {name: repr(value) for name, value in vars(found).items()} == {
        name: repr(value) for name, value in vars(error).items()
    }


@pytest.mark.parametrize(
    "error", [each for each in ERRORS if not isinstance(each, BatchFailed)], ids=lambda error: type(error).__name__
)
def test_an_error_can_be_made_again_from_its_arguments_as_celery_does(error):
    assert str(type(error)(*error.args)) == str(error)


def kinds_of(kind):
    for each in kind.__subclasses__():
        yield each
        yield from kinds_of(each)


def test_every_error_of_ours_comes_through_whatever_it_is_made_from():
    for module in pkgutil.walk_packages(sameas.__path__, "sameas."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    kinds = {kind for kind in kinds_of(SameasError) if kind.__module__.startswith("sameas.")}
    assert len(kinds) > 20
    for kind in kinds:
        error = kind.__new__(kind, "text")
        error.extra = 1
        found = pickle.loads(pickle.dumps(error))
        assert (type(found), found.args, found.extra) == (kind, ("text",), 1)


def test_a_decorated_function_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(double)) is double
    assert pickle.loads(pickle.dumps(triple)) is triple
    assert pickle.loads(pickle.dumps(Shop().pay)).record(1).result == "paid 1"


def test_a_pool_of_processes_runs_a_decorated_function_and_sends_its_error_back():
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert pool.submit(double, 4).result(60) == 8
        with pytest.raises(NotCanonical) as refused:
            pool.submit(double, object()).result(60)
        assert refused.value.reason


def test_a_function_without_a_name_of_its_own_says_why_it_cannot_be_pickled():
    @engine.once(scope="local")
    def local(number):
        return number

    with pytest.raises(pickle.PicklingError, match="at the top of a module"):
        pickle.dumps(local)

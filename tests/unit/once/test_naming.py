"""Default scopes: a function is known by where it is defined, and only where that tells it from all others."""

import functools
import importlib
import subprocess
import sys

import pytest

from sameas import Engine, IdempotentProcessor, open_store
from sameas.once.decorator import scope_of
from sameas.once.store import Query

PROGRAM = """
from sameas import Engine, open_store

engine = Engine(open_store("sqlite:///{path}"))

@engine.once({options})
def process(order):
    return "{name}"

print(process(1))
"""


def run_program(folder, name, options=""):
    program = folder / f"{name}.py"
    program.write_text(PROGRAM.format(path=folder / "sameas.db", name=name, options=options))
    return subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)


def test_two_programs_on_one_file_do_not_share_what_main_does(tmp_path):
    for name in ("charge", "refund"):
        refused = run_program(tmp_path, name)
        assert refused.returncode == 1
        assert "__main__.process identifies nothing: every program has a __main__; say scope=" in refused.stderr
        assert run_program(tmp_path, name, f"scope='{name}'").stdout == f"{name}\n"


SPAWNING = """
import multiprocessing
from dataclasses import dataclass
from sameas.identity.key import content_key

@dataclass
class Charge:
    amount: int

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(content_key(Charge(1)) == pool.apply(content_key, [Charge(1)]))
"""


def test_a_class_of_main_is_the_same_in_the_processes_that_main_spawns(tmp_path):
    program = tmp_path / "spawning.py"
    program.write_text(SPAWNING)
    assert subprocess.run([sys.executable, program], capture_output=True, text=True, check=True).stdout == "True\n"


def handle(order):
    return order


class Consumer:
    def handle(self, order):
        return order

    @classmethod
    def make(cls, order):
        return order

    @staticmethod
    def plain(order):
        return order


def outer():
    def inner(order):
        return order

    return inner


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (outer(), "made anew by each call"),
        (lambda order: order, "has no name"),
        (functools.partial(handle, 1), "has no name"),
        (Consumer().handle, "which object"),
        (Consumer.make, "which object"),
    ],
    ids=repr,
)
def test_a_name_that_identifies_nothing_is_refused_with_the_way_out(function, why):
    store = open_store("memory://")
    with pytest.raises(ValueError, match=rf"{why}.*say scope="):
        IdempotentProcessor(function, store=store)
    with pytest.raises(ValueError, match=rf"{why}.*say scope="):
        Engine(store).once()(function)
    assert IdempotentProcessor(function, store=store, scope="orders").engine


def test_a_function_at_the_top_of_a_module_or_a_class_has_a_name():
    assert scope_of(handle) == f"{__name__}.handle"
    assert scope_of(Consumer.plain) == f"{__name__}.Consumer.plain"
    assert scope_of(len) == "builtins.len"
    engine = Engine(open_store("memory://"))
    for _ in range(2):
        engine.once()(handle)("order")
    assert len(engine.find(Query(scope=f"{__name__}.handle")).records) == 1


MODULE = """
from sameas import Engine, open_store

engine = Engine(open_store("memory://"))

@engine.once({first})
def process(order):
    return 1

{second}
"""
AGAIN = """
@engine.once()
def process(order):
    return 2
"""


@pytest.fixture
def written(tmp_path, monkeypatch, request):
    name = f"written_{abs(hash(request.node.name))}"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield lambda text: (tmp_path / f"{name}.py").write_text(text) and name
    sys.modules.pop(name, None)


def test_a_function_that_is_defined_again_under_its_name_is_refused(written):
    name = written(MODULE.format(first="", second=AGAIN))
    with pytest.raises(ValueError, match=rf"{name}.process is the name of two functions.*say scope="):
        importlib.import_module(name)


def test_a_function_that_is_defined_again_may_say_its_scope(written):
    module = importlib.import_module(written(MODULE.format(first="scope='one'", second=AGAIN)))
    assert module.process(1) == 2


def test_a_module_may_be_loaded_again_as_it_was_or_changed(written):
    module = importlib.import_module(written(MODULE.format(first="", second="")))
    importlib.reload(module)
    written(MODULE.format(first="", second="").replace("return 1", "return 3"))
    importlib.invalidate_caches()
    assert importlib.reload(module).process(1) == 3


def added(left, right):
    return left + right


@functools.wraps(added)
def multiplied(left, right):
    return left * right


def test_a_wrapper_that_has_the_name_of_what_it_wraps_is_not_taken_for_it():
    engine, other = (Engine(open_store("memory://")) for _ in range(2))
    assert engine.once()(added)(3, 4) == 7
    with pytest.raises(ValueError, match="is the name of two functions"):
        engine.once()(multiplied)
    assert engine.once(scope="multiplied")(multiplied)(3, 4) == 12
    assert other.once()(added)(3, 4) == 7


def summed(left, right):
    return left + right


def totalled(left, right):
    return left + right


def labelled(label):
    @functools.wraps(summed)
    def inner(left, right):
        return [label, summed(left, right)]

    return inner


def preset(label):
    @functools.wraps(totalled)
    def inner(left, right, _label=label):
        return [_label, totalled(left, right)]

    return inner


@pytest.mark.parametrize("wrapped", [labelled, preset])
def test_two_wrappers_of_one_code_around_one_function_are_not_taken_for_each_other(wrapped):
    engine, other = (Engine(open_store("memory://")) for _ in range(2))
    assert engine.once()(wrapped("a"))(3, 4) == ["a", 7]
    assert other.once()(wrapped("a"))(3, 4) == ["a", 7]
    with pytest.raises(ValueError, match="is the name of two functions"):
        engine.once()(wrapped("b"))
    assert engine.once(scope="b")(wrapped("b"))(3, 4) == ["b", 7]

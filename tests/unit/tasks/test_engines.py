"""The engine of an app: from its configuration, one per process, opened when it is needed."""

import os

import pytest
from celery import Celery

from sameas import Engine, Policy, open_store
from sameas.tasks.celery import ENGINES, close_engine, open_engine


def test_an_app_without_a_store_is_told_what_to_set(bench):
    bench.app.conf.sameas_store = None
    task = bench.task(lambda: None, name="task")
    state, error = bench.deliver(task)
    assert state == "FAILURE"
    assert "sameas_store" in str(error)


def test_the_engine_is_opened_once_and_again_after_it_was_closed(bench):
    first = ENGINES.of(bench.app)
    assert ENGINES.of(bench.app) is first
    close_engine(bench.app)
    assert ENGINES.of(bench.app) is not first


def test_what_the_configuration_says_reaches_the_engine():
    app = Celery("conf", set_as_current=False)
    told = []

    class Observer:
        def on(self, event):
            told.append(event)

    app.conf.update(
        sameas_store="memory://",
        sameas_policy=Policy(retention=60.0, lease=5.0),
        sameas_policies={"short": Policy(retention=6.0, lease=5.0)},
        sameas_observers=[Observer()],
    )
    with open_engine(app.conf) as engine:
        for scope, seconds in (("long", 60), ("short", 6)):
            record = engine.record(lambda context: 1, scope=scope, key="k")
            assert record.expires_at - record.completed_at == seconds * 1_000_000
    assert told


def test_an_engine_or_what_makes_one_may_be_given():
    app = Celery("given", set_as_current=False)
    with Engine(open_store("memory://")) as engine:
        for given in (engine, lambda: engine):
            app.conf.sameas_engine = given
            assert open_engine(app.conf) is engine
        app.conf.sameas_engine = "memory://"
        with pytest.raises(TypeError, match="sameas_engine"):
            open_engine(app.conf)


def test_what_was_opened_is_closed_and_what_was_given_is_left_open(bench):
    closed = []

    class Noting(Engine):
        def close(self):
            closed.append(self)
            super().close()

    made, given = Noting(open_store("memory://")), Noting(open_store("memory://"))
    for setting in (lambda: made, given):
        bench.app.conf.sameas_engine = setting
        ENGINES.of(bench.app)
        close_engine(bench.app)
    assert closed == [made]


def test_the_secret_is_that_of_fingerprints():
    app = Celery("secret", set_as_current=False)
    prints = set()
    for secret in (None, b"one", b"two"):
        app.conf.update(sameas_store="memory://", sameas_secret=secret)
        with open_engine(app.conf) as engine:
            engine.run(lambda context: 1, scope="s", key="k", payload={"a": 1})
            prints.add(engine.read("s", "k").fingerprint)
    assert len(prints) == 3


def test_a_task_may_have_an_engine_of_its_own(bench):
    with Engine(open_store("memory://")) as engine:
        task = bench.task(lambda: "done", name="task", engine=engine)
        bench.deliver(task)
        assert engine.read("task", "one") is not None
    assert ENGINES.of(bench.app).read("task", "one") is None


def test_settings_may_have_djangos_prefix(bench):
    class Settings:
        CELERY_SAMEAS_STORE = "memory://"

    app = Celery("django", set_as_current=False)
    app.config_from_object(Settings, namespace="CELERY")
    with open_engine(app.conf) as engine:
        assert engine.read("s", "k") is None


def test_a_forked_child_opens_its_own(bench):
    parent = ENGINES.of(bench.app)
    pid = os.fork()
    if not pid:
        os._exit(0 if ENGINES.of(bench.app) is not parent else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert ENGINES.of(bench.app) is parent

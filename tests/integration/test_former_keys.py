"""Programs of before types had tags and of today, at the same work on one real store, all at once: nothing is run twice."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random

import pytest

from sameas import Engine, KeyReused, Policy, open_store
from tests.unit.once.before import Before, before

PAYLOADS = 40
PROGRAMS = 3


@dataclass
class Charge:
    amount: int


@dataclass
class Refund:
    amount: int


@pytest.fixture(params=["sqlite", "redis_url", "postgres_url", "mariadb_url"])
def url(request, tmp_path):
    return f"sqlite:///{tmp_path}/sameas.db" if request.param == "sqlite" else request.getfixturevalue(request.param)


@pytest.fixture
def engine(url):
    with Engine(open_store(url), policy=Policy(lease=30.0)) as engine:
        yield engine


def test_what_was_done_before_is_found_and_what_is_done_today_is_refused_to_programs_of_before(engine):
    old = Before(engine.store.backend)
    old.run(lambda _: "old", Charge(1))
    assert engine.record(lambda _: "new", scope="pay", payload=Charge(1)).was_replay
    assert engine.run(lambda _: "refunded", scope="pay", payload=Refund(2)) == "refunded"
    assert engine.run(lambda _: "charged", scope="pay", payload=Charge(2)) == "charged"
    assert engine.run(lambda _: "json", scope="pay", payload={"amount": 2}) == "json"
    assert old.run(lambda _: "never", Refund(2)) == "json", "as it always was for them"
    engine.run(lambda _: "charged", scope="pay", payload=Charge(3))
    with pytest.raises(KeyReused):
        old.run(lambda _: "never", Charge(3))


def test_a_lease_that_a_program_of_before_let_go_is_taken_over(engine):
    old = Before(engine.store.backend, policy=Policy(lease=0.001))
    dead = old.engine._call_builder.call(lambda _: None, **before(Charge(1)))
    old.engine.store.claim(dead.request)
    attempts = []
    engine.run(lambda context: attempts.append(context.attempt), scope="pay", payload=Charge(1))
    assert attempts == [2]


def test_all_at_once_each_payload_is_run_once(url):
    runs = Counter()

    def program(number):
        with Engine(open_store(url)) as engine:
            old = Before(engine.store.backend)
            amounts = list(range(PAYLOADS))
            Random(number).shuffle(amounts)
            for amount in amounts:

                def work(_, amount=amount):
                    runs[amount] += 1
                    return amount

                try:
                    if number % 2:
                        assert old.run(work, Charge(amount)) == amount
                    else:
                        assert engine.run(work, scope="pay", payload=Charge(amount)) == amount
                except KeyReused:
                    assert number % 2, "today's programs are never refused"

    with Engine(open_store(url)):
        pass
    with ThreadPoolExecutor(2 * PROGRAMS) as threads:
        list(threads.map(program, range(2 * PROGRAMS)))
    assert runs == dict.fromkeys(range(PAYLOADS), 1)

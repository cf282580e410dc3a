"""The SQL stores on real servers: faults, forks, pools, wake-ups, migrations, and what stands in the tables."""

import asyncio
import gc
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy

from sameas.connections import open_async_store, open_backend, open_store
from sameas.identity.key import record_digest
from sameas.once.async_engine import AsyncEngine
from sameas.once.codec import frame
from sameas.once.engine import Engine
from sameas.once.errors import StoreUnavailable
from sameas.once.record import About, Acquired, Busy, ClaimRequest, Identity, Lease, Outcome, Replay
from sameas.once.store import AsyncStore, Query, Store
from sameas.stores.postgres_waker import PostgresWaker
from sameas.stores.statements import migrations, statements
from tests.servers.proxy import FaultProxy
from tests.servers.round_trips import RoundTrips

ROOT = Path(__file__).resolve().parents[2]
SECOND = 1_000_000
# Time-outs for tests that wait for one: short, yet long enough for a busy machine to connect.
SHORT = {"timeout": 1.0, "lock_timeout": 0.5}


@pytest.fixture(params=["postgres_url", "mariadb_url"])
def url(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def server(url, request):
    return request.getfixturevalue("postgres_server" if url.startswith("postgresql") else "mariadb_server")


def request_for(key="k", *, attempt="a1", lease=30.0, about=None, tenant="t"):
    identity = Identity(record_digest(tenant, "s", key), tenant, "s", key)
    return ClaimRequest(identity, "f", attempt, round(lease * SECOND), 60 * SECOND, about or About())


def finished(store, request, outcome=None):
    claim = store.claim(request)
    assert isinstance(claim, Acquired), claim
    lease = Lease(request.identity, claim.fence, request.attempt_id)
    store.complete(lease, outcome=outcome or Outcome(frame(b"done"), "text/plain"), retain_for=60 * SECOND)
    return lease


def rows_of(url, sql):
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        with engine.begin() as connection:
            result = connection.exec_driver_sql(sql)
            return [dict(row._mapping) for row in result] if result.returns_rows else []
    finally:
        engine.dispose()


class TestFaults:
    def test_server_killed_and_back_is_found_again_without_an_error(self, url, server):
        with open_store(url) as store:
            finished(store, request_for())
            server.kill_and_restart()
            assert isinstance(store.claim(request_for(attempt="a2")), Replay)

    def test_server_killed_and_back_is_found_again_by_tasks(self, url, server):
        async def main():
            async with AsyncStore(open_backend(url)) as store:
                await store.claim(request_for())
                server.kill_and_restart()
                return await store.claim(request_for(attempt="a2"))

        assert isinstance(asyncio.run(main()), Busy)

    def test_dead_server_is_unavailable_in_bounded_time(self, url, server):
        with open_store(url, **SHORT) as store:
            finished(store, request_for())
            server.kill()
            try:
                began = time.monotonic()
                with pytest.raises(StoreUnavailable):
                    store.claim(request_for(attempt="a2"))
                assert time.monotonic() - began < 5
            finally:
                server.start()

    def test_silent_server_is_unavailable_in_bounded_time_for_threads_and_tasks(self, url, server):
        async def ask():
            store = AsyncStore(open_backend(url, **SHORT))
            await store.claim(request_for("other"))
            try:
                server.pause()
                with pytest.raises(StoreUnavailable):
                    await store.claim(request_for("other", attempt="a2"))
            finally:
                server.resume()
            await store.close()

        with open_store(url, **SHORT) as store:
            finished(store, request_for())
            began = time.monotonic()
            try:
                server.pause()
                with pytest.raises(StoreUnavailable):
                    store.claim(request_for(attempt="a2"))
            finally:
                server.resume()
            asyncio.run(ask())
            assert time.monotonic() - began < 20
            assert isinstance(store.claim(request_for(attempt="a3")), Replay)

    def test_exhausted_pool_is_unavailable_in_bounded_time(self, url):
        with open_store(url, pool_size=1, **SHORT) as store:
            pool = store.backend.performer
            taken = pool._pool.take() if hasattr(pool, "_pool") else pool._engine.connect()
            with pytest.raises(StoreUnavailable, match="pool_size"):
                store.claim(request_for())
            pool._pool.give_back(taken) if hasattr(pool, "_pool") else taken.close()
            assert isinstance(store.claim(request_for()), Acquired)

    def test_pool_of_one_serves_many_threads_and_tasks(self, url):
        with Engine(open_store(url, pool_size=1)) as engine, ThreadPoolExecutor(8) as threads:
            done = list(threads.map(lambda key: engine.run(lambda _: key, scope="s", key=str(key)), range(24)))
        assert done == list(range(24))

        async def main():
            async with AsyncEngine(open_async_store(url, pool_size=1)) as engine:
                return await asyncio.gather(
                    *(engine.run(lambda _: "new", scope="s", key=str(key)) for key in range(48))
                )

        assert asyncio.run(main()) == [*range(24), *["new"] * 24]

    def test_reply_lost_after_the_claim_was_applied_costs_nothing(self, url, server):
        with FaultProxy(port=server.port) as proxy, open_store(proxy.url_of(url), **SHORT) as store:
            finished(store, request_for("warm"))
            proxy.drop_reply(1)
            claim = store.claim(request_for())
            assert isinstance(claim, Acquired)
            assert claim.attempt == 1
            assert isinstance(store.claim(request_for(attempt="a2")), Busy)

    # asyncmy cannot close a connection whose event loop is closed; psycopg can.
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_store_used_from_two_event_loops_works(self, url):
        store = open_async_store(url)
        assert isinstance(asyncio.run(store.claim(request_for("1"))), Acquired)
        assert isinstance(asyncio.run(store.claim(request_for("2"))), Acquired)
        store.backend.close()
        gc.collect()

    def test_forked_child_uses_connections_of_its_own(self, url):
        code = (
            "import os, sys\n"
            "from sameas.connections import open_store\n"
            "from sameas.once.engine import Engine\n"
            "engine = Engine(open_store(sys.argv[1], pool_size=1))\n"
            "engine.run(lambda _: 'parent', scope='s', key='0')\n"
            "children = []\n"
            "for number in range(4):\n"
            "    child = os.fork()\n"
            "    if child == 0:\n"
            "        for key in range(20):\n"
            "            engine.run(lambda _: number, scope='s', key=str(key))\n"
            "        os._exit(0)\n"
            "    children.append(child)\n"
            "codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]\n"
            "print(codes, engine.run(lambda _: 'again', scope='s', key='0'))\n"
            "engine.close()\n"
        )
        told = subprocess.run(
            [sys.executable, "-c", code, url],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert told.stdout == "[0, 0, 0, 0] parent\n"

    def test_deadlocks_and_conflicts_are_run_again(self, postgres_url):
        with open_store(postgres_url) as store:
            rows_of(
                postgres_url,
                "CREATE SEQUENCE failures; "
                "CREATE FUNCTION fail_twice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                "IF nextval('failures') <= 2 THEN RAISE EXCEPTION 'conflict' USING ERRCODE = '40001'; END IF; "
                "RETURN NEW; END $$; "
                "CREATE TRIGGER fail_twice BEFORE INSERT ON sameas_records FOR EACH ROW EXECUTE FUNCTION fail_twice()",
            )
            assert isinstance(store.claim(request_for()), Acquired)


class TestRoundTrips:
    def test_postgres_claims_and_completes_in_one_each_and_replays_in_one(self, postgres_server, postgres_url):
        with FaultProxy(port=postgres_server.port) as proxy, open_store(proxy.url_of(postgres_url)) as store:
            for number in range(8):
                finished(store, request_for(f"warm{number}"))
                store.claim(request_for(f"warm{number}", attempt="a2"))
            with RoundTrips(proxy) as fresh:
                finished(store, request_for())
            with RoundTrips(proxy) as replay:
                assert isinstance(store.claim(request_for(attempt="a2")), Replay)
        assert (fresh.count, replay.count) == (2, 1)

    def test_many_claims_are_pipelined(self, postgres_server, postgres_url):
        with FaultProxy(port=postgres_server.port) as proxy, open_store(proxy.url_of(postgres_url)) as store:
            store.claim_many([request_for(f"warm{number}") for number in range(100)])
            with RoundTrips(proxy) as trips:
                claims = store.claim_many([request_for(str(number)) for number in range(100)])
        assert all(isinstance(claim, Acquired) for claim in claims)
        assert trips.count < 20

    def test_mariadb_replays_in_one(self, mariadb_server, mariadb_url):
        with FaultProxy(port=mariadb_server.port) as proxy, open_store(proxy.url_of(mariadb_url)) as store:
            finished(store, request_for())
            with RoundTrips(proxy) as fresh:
                finished(store, request_for("other"))
            with RoundTrips(proxy) as replay:
                assert isinstance(store.claim(request_for(attempt="a2")), Replay)
        assert (fresh.count, replay.count) == (3, 1)


class TestWaker:
    def test_waiter_is_woken_by_another_process_long_before_its_poll(self, postgres_url):
        backend = open_backend(postgres_url, listen_url=postgres_url)
        backend.poll_at_most = 30.0
        woken = threading.Event()
        with Store(backend) as store, open_store(postgres_url) as other:
            request = request_for()
            claim = other.claim(request)
            end = backend.waker.listen(request.identity.digest, woken.set)
            _eventually(lambda: rows_of(postgres_url, "SELECT watched FROM sameas_records") == [{"watched": True}])
            woken.clear()
            other.complete(
                Lease(request.identity, claim.fence, "a1"),
                outcome=Outcome(b"x", "text/plain"),
                retain_for=SECOND,
            )
            assert woken.wait(5)
            end()
            assert isinstance(store.claim(request_for(attempt="a2")), Replay)

    @pytest.mark.parametrize("change", ["release", "forget", "forget_where"])
    def test_whoever_waits_hears_of_release_and_forget(self, postgres_url, change):
        backend = open_backend(postgres_url, listen_url=postgres_url)
        woken = threading.Event()
        with Engine(Store(backend)) as engine:
            request = request_for()
            claim = engine.store.claim(request)
            end = backend.waker.listen(request.identity.digest, woken.set)
            _eventually(lambda: rows_of(postgres_url, "SELECT watched FROM sameas_records") == [{"watched": True}])
            woken.clear()
            if change == "release":
                engine.store.release(Lease(request.identity, claim.fence, "a1"))
            elif change == "forget":
                engine.store.forget(request.identity)
            else:
                engine.forget_where(tenant="t")
            assert woken.wait(5)
            end()

    def test_thread_ends_when_nobody_listens_and_comes_back(self, postgres_url):
        open_store(postgres_url).close()
        waker = PostgresWaker(postgres_url, linger=0.05)
        for _ in range(2):
            end = waker.listen(b"d" * 32, lambda: None)
            thread = waker._thread
            assert waker.listening
            end()
            _eventually(lambda: not waker.listening)
            thread.join(5)
            assert not thread.is_alive()

    def test_listener_reconnects_after_the_server_was_killed(self, postgres_server, postgres_url):
        backend = open_backend(postgres_url, listen_url=postgres_url)
        woken = threading.Event()
        with Store(backend) as store:
            request = request_for()
            claim = store.claim(request)
            end = backend.waker.listen(request.identity.digest, woken.set)
            _eventually(lambda: rows_of(postgres_url, "SELECT watched FROM sameas_records") == [{"watched": True}])
            woken.clear()
            postgres_server.kill_and_restart()
            # Whatever happened meanwhile was not told: everybody is woken once.
            assert woken.wait(10)
            woken.clear()
            store.release(Lease(request.identity, claim.fence, "a1"))
            assert woken.wait(10)
            end()

    def test_listener_that_raises_and_words_of_other_programs_leave_the_thread_alive(self, postgres_url):
        backend = open_backend(postgres_url, listen_url=postgres_url)
        woken = threading.Event()

        def fail():
            raise RuntimeError("this listener is broken")

        with Store(backend) as store:
            request = request_for()
            claim = store.claim(request)
            ends = [backend.waker.listen(request.identity.digest, wake) for wake in (fail, woken.set)]
            _eventually(lambda: rows_of(postgres_url, "SELECT watched FROM sameas_records") == [{"watched": True}])
            rows_of(postgres_url, "NOTIFY sameas, 'something else'")
            woken.clear()
            store.release(Lease(request.identity, claim.fence, "a1"))
            assert woken.wait(10)
            assert backend.waker._thread.is_alive()
            for end in ends:
                end()

    def test_waiters_share_the_result_of_another_process(self, postgres_url):
        backend = open_backend(postgres_url, listen_url=postgres_url)
        with (
            Engine(Store(backend)) as engine,
            open_store(postgres_url) as other,
            ThreadPoolExecutor(1) as thread,
        ):
            identity = Identity(record_digest("", "s", "k"), "", "s", "k")
            request = ClaimRequest(identity, "", "elsewhere", 30 * SECOND, 60 * SECOND)
            claim = other.claim(request)
            waiting = thread.submit(engine.record, lambda _: "mine", scope="s", key="k")
            _eventually(lambda: backend.waker.listening)
            other.complete(
                Lease(identity, claim.fence, "elsewhere"),
                outcome=Outcome(frame(b'"theirs"'), "application/json"),
                retain_for=60 * SECOND,
            )
            assert (waiting.result(10).result, waiting.result().was_replay) == ("theirs", True)


def test_a_batch_of_prune_is_bounded_whatever_postgres_believes_of_the_table(postgres_url):
    store = open_store(postgres_url)
    finished(store, request_for("only", attempt="a"))
    # Of a table with one row the planner believes that choosing anew for each of its rows costs nothing.
    rows_of(postgres_url, "ANALYZE sameas_records")
    for number in range(7):
        finished(store, request_for(f"k{number}", attempt=f"a{number}"))
    rows_of(postgres_url, "UPDATE sameas_records SET created_at = 1, expires_at = 2 WHERE key <> 'only'")
    assert [store.prune(3) for _ in range(4)] == [3, 3, 1, 0]
    store.close()


class TestMigrations:
    def test_many_processes_may_make_the_tables_at_once(self, url):
        code = "import sys; from sameas.connections import open_store; open_store(sys.argv[1]).close()"
        running = [
            subprocess.Popen([sys.executable, "-c", code, url], cwd=ROOT, stderr=subprocess.PIPE) for _ in range(4)
        ]
        said = [process.communicate(timeout=60)[1] for process in running]
        assert [process.returncode for process in running] == [0] * 4, said
        dialect = "postgres" if url.startswith("postgresql") else "mysql"
        versions = [row["version"] for row in rows_of(url, "SELECT version FROM sameas_schema ORDER BY version")]
        assert versions == list(range(1, len(migrations(dialect)) + 1))

    def test_this_release_runs_on_the_tables_of_a_later_one(self, url):
        open_store(url).close()
        rows_of(url, "ALTER TABLE sameas_records ADD COLUMN later_text VARCHAR(64) DEFAULT 'x'")
        rows_of(url, "ALTER TABLE sameas_records ADD COLUMN later_number INTEGER")
        rows_of(url, "CREATE INDEX sameas_records_later ON sameas_records (later_text)")
        rows_of(url, "INSERT INTO sameas_schema (version) VALUES (99)")
        with Engine(open_store(url)) as engine:
            assert engine.run(lambda _: 1, scope="s", key="k") == 1
            assert engine.run(lambda _: 2, scope="s", key="k") == 1
            assert len(engine.find(Query()).records) == 1
            assert engine.forget("s", "k")
            assert engine.prune() == 0

    def test_sqlite_statements_of_the_first_release_run_on_todays_tables(self, tmp_path):
        import sqlite3

        open_store(f"sqlite:///{tmp_path}/a.db").close()
        connection = sqlite3.connect(tmp_path / "a.db")
        connection.execute(
            "INSERT INTO sameas_records (digest, tenant, scope, key, fingerprint, state, fence, attempt, attempt_id,"
            " owner, lease_until, created_at, expires_at, route, http_method, tags, audit_meta)"
            " VALUES (zeroblob(32), 't', 's', 'k', 'f', 'held', 1, 1, 'a', '', 2, 1, 3, NULL, NULL, '', '')"
        )
        connection.execute(
            "UPDATE sameas_records SET state = 'done', is_processed = 1, processing_completed_at = 2, outcome = x'00',"
            " content_type = 'text/plain', status_code = 200, meta = ''"
        )
        assert connection.execute("SELECT response_body FROM sameas_records").fetchall() == [(None,)]
        connection.close()

    def test_role_without_the_right_to_make_tables_opens_with_create_false(self, url):
        open_store(url).close()
        with open_store(url, create=False) as store:
            assert isinstance(store.claim(request_for()), Acquired)

    def test_every_dialect_has_the_same_statements_for_the_shared_scripts(self):
        shared = {
            "look",
            "settle",
            "settled_by_me",
            "renew",
            "release",
            "forget",
            "forget_where",
            "find",
            "prune",
        }
        conditions = {name for name in statements("sqlite") if name.startswith("where_")}
        for dialect in ("sqlite", "postgres", "mysql", "mssql"):
            assert shared | conditions <= set(statements(dialect)), dialect


class TestTable:
    """Source document 003, as people see it."""

    def test_http_record_is_readable_under_the_documents_names(self, url):
        about = About(owner="web:1", route="/api/orders", method="POST", audit={"trace_id": "t"})
        body = '{"ok": "yes, caf\u00e9"}'
        outcome = Outcome(frame(body.encode()), "application/json; charset=utf-8", {"status": 201})
        with open_store(url) as store:
            finished(store, request_for(about=about), outcome)
            record = store.read(request_for().identity)
        assert record.outcome == outcome
        (row,) = rows_of(url, "SELECT * FROM idempotency_keys")
        assert (row["key"], row["route"], row["http_method"], row["status_code"]) == (
            "k",
            "/api/orders",
            "POST",
            201,
        )
        assert (row["response_body"], row["content_type"]) == (body, "application/json; charset=utf-8")
        assert row["is_processed"]
        assert row["created_at"].year >= 2024
        assert row["created_at"] <= row["processing_completed_at"] < row["expires_at"]

    def test_result_that_is_not_text_has_no_readable_body(self, url):
        with open_store(url) as store:
            finished(store, request_for("png"), Outcome(frame(b"\x89PNG"), "image/png", {"status": 200}))
            finished(store, request_for("bad"), Outcome(frame(b"\xff"), "text/plain", {"status": 200}))
            finished(store, request_for("call"), Outcome(frame(b"not HTTP"), "text/plain"))
        assert {row["response_body"] for row in rows_of(url, "SELECT response_body FROM sameas_records")} == {None}

    @pytest.mark.parametrize("about", [About(route="orders"), About(route="/a?b=c"), About(method="BREW")])
    def test_route_or_method_that_breaks_the_rules_is_refused_before_anything_runs(self, url, about):
        with open_store(url) as store, pytest.raises(ValueError, match="route|method"):
            store.claim(request_for(about=about))

    def test_odd_media_type_or_status_is_kept_beside_the_columns(self, url):
        outcome = Outcome(frame(b"x"), "nonsense", {"status": 999})
        with open_store(url) as store:
            finished(store, request_for(), outcome)
            assert store.read(request_for().identity).outcome == outcome
        (row,) = rows_of(url, "SELECT content_type, status_code FROM sameas_records")
        assert row == {"content_type": None, "status_code": None}

    @pytest.mark.parametrize(
        "change",
        [
            "status_code = 99",
            "status_code = 600",
            "expires_at = created_at",
            "route = 'orders'",
            "route = '/a?b'",
            "http_method = 'BREW'",
            "content_type = 'nonsense'",
            "state = 'lost'",
            "state = 'held'",
        ],
    )
    def test_database_itself_keeps_the_rules(self, url, change):
        with open_store(url) as store:
            finished(store, request_for())
        with pytest.raises(sqlalchemy.exc.DBAPIError, match="(?i)check|constraint"):
            rows_of(url, f"UPDATE sameas_records SET {change}")

    def test_keys_and_tenants_that_differ_by_case_or_blanks_do_not_meet(self, url):
        with open_store(url) as store:
            for number, tenant in enumerate(("t", "T", "t ", "t\u00e9", "te\u0301")):
                for key in ("k", "K", "k ", "K "):
                    request = request_for(key, tenant=tenant, attempt=f"{number}{key}")
                    assert isinstance(store.claim(request), Acquired)
            assert len(store.find(Query(tenant="t")).records) == 4
            assert len(store.find(Query(tenant="t", key_prefix="k")).records) == 2


def _eventually(holds, *, within=10.0):
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)

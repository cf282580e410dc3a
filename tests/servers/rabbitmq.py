"""A real RabbitMQ broker: the system's, with a node name, ports, cookie and data folder of its own.

Erlang's name service (epmd) is started beside it on a port of its own, so that neither meets a system broker.
"""

import os
import shlex
import signal
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tests.servers.port import free_port
from tests.servers.process import process_tree
from tests.servers.program import find_program
from tests.servers.server import Server

# Debian's script on the path changes to the user rabbitmq; the ones here run as who starts them.
SCRIPT_FOLDERS = ("/usr/lib/rabbitmq/bin",)
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
# A method frame on channel 0 whose payload begins with class 10, method 10: Connection.Start.
START_FRAME = b"\x01\x00\x00"
START_METHOD = b"\x00\x0a\x00\x0a"
BOOT_IS_OVER = "Server startup complete"
ANSWER_WITHIN_SECONDS = 5.0


class RabbitMQServer(Server):
    """A broker with no plugins; guest may log in from loopback."""

    name: ClassVar[str] = "rabbitmq"
    ready_within_seconds: ClassVar[float] = 60.0

    def __init__(
        self, *, configuration: Mapping[str, str] | None = None, variables: Mapping[str, int] | None = None
    ) -> None:
        """`variables` are what the configuration file has no names for, such as channel_tick_interval."""
        super().__init__()
        self._program = find_program("rabbitmq-server", folders=SCRIPT_FOLDERS)
        self._name_service = find_program("epmd")
        self._configuration = dict(configuration or {})
        self._variables = dict(variables or {})
        self._node = f"sameas-{self.port}@localhost"
        self._name_port = free_port()
        self._distribution_port = free_port()

    @property
    def url(self) -> str:
        """For kombu and Celery; the virtual host is /."""
        return f"amqp://guest:guest@{self.host}:{self.port}//"

    def prepare(self) -> None:
        for name in ("home", "data", "logs"):
            (self.folder / name).mkdir()
        (self.folder / "plugins").write_text("[].\n")
        lines = [f"{name} = {value}\n" for name, value in self._configuration.items()]
        (self.folder / "rabbitmq.conf").write_text("".join(lines))

    def command(self) -> Sequence[str]:
        # The name service is a child of the broker's shell, so that one tree holds both.
        epmd = shlex.join([str(self._name_service), "-port", str(self._name_port), "-address", self.host])
        return ["/bin/sh", "-c", f"{epmd} & exec {shlex.quote(str(self._program))}"]

    def environment(self) -> Mapping[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("RABBITMQ_", "ERL_"))}
        loopback = "{" + self.host.replace(".", ",") + "}"
        variables = "".join(f" -rabbit {name} {value}" for name, value in self._variables.items())
        return {
            **inherited,
            "HOME": str(self.folder / "home"),
            "ERL_EPMD_PORT": str(self._name_port),
            "ERL_EPMD_ADDRESS": self.host,
            "RABBITMQ_NODENAME": self._node,
            "RABBITMQ_NODE_IP_ADDRESS": self.host,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_LOG_BASE": str(self.folder / "logs"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(self._pid_file),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            # Without busy waiting: schedulers that spin starve the tests on a small machine.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                f"-start_epmd false +sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {loopback}"
                f"{variables}"
            ),
        }

    def is_ready(self) -> bool:
        try:
            with socket.create_connection((self.host, self.port), timeout=ANSWER_WITHIN_SECONDS) as connection:
                connection.sendall(PROTOCOL_HEADER)
                frame = connection.recv(4096)
        except OSError:
            return False
        answered = frame.startswith(START_FRAME) and frame[7:11] == START_METHOD
        # It answers a moment before its boot is over, and a test may kill it at once.
        return answered and BOOT_IS_OVER in self.recent_log

    def ask_to_end(self, number: signal.Signals) -> None:
        # The shell around the broker does not hand the signal on.
        os.kill(self._broker_pid(), number)

    @property
    def _pid_file(self) -> Path:
        return self.folder / "pid"

    def _broker_pid(self) -> int:
        written = int(self._pid_file.read_text())
        # A stale file may name another process of the machine.
        return written if written in {member.pid for member in process_tree(self.pid)} else self.pid

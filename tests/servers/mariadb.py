"""A real MariaDB server: the system's mariadbd, with a data folder, socket and port of its own."""

import os
from collections.abc import Mapping, Sequence
from typing import ClassVar

import pymysql

from tests.servers.program import find_program
from tests.servers.server import Server

SUPERUSER = "root"
SYSTEM_DATABASE = "mysql"
ANSWER_WITHIN_SECONDS = 5


class MariaDBServer(Server):
    """A MariaDB on loopback whose superuser has no password."""

    name: ClassVar[str] = "mariadb"

    def __init__(self, *, fsync: bool = True, options: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._program = find_program("mariadbd")
        self._installer = find_program("mariadb-install-db")
        # 2 still hands each commit to the kernel: it survives a killed server, though not a power cut.
        self._options = {"innodb-flush-log-at-trx-commit": "1" if fsync else "2", **(options or {})}

    @property
    def url(self) -> str:
        """The database that is always there."""
        return self.database_url(SYSTEM_DATABASE)

    def database_url(self, database: str) -> str:
        """A database's address for SQLAlchemy."""
        return f"mysql+pymysql://{SUPERUSER}@{self.host}:{self.port}/{database}?charset=utf8mb4"

    def prepare(self) -> None:
        empty_password = "--auth-root-authentication-method=normal"
        self.run_tool([str(self._installer), *self._where(), empty_password, "--skip-test-db"])

    def command(self) -> Sequence[str]:
        settings = {
            "bind-address": self.host,
            "port": str(self.port),
            "socket": str(self.folder / "socket"),
            "pid-file": str(self.folder / "pid"),
            "innodb-buffer-pool-size": "64M",
            **self._options,
        }
        words = [f"--{name}={value}" for name, value in settings.items()]
        return [str(self._program), *self._where(), "--skip-name-resolve", *words]

    def is_ready(self) -> bool:
        try:
            self._execute("SELECT 1")
        except pymysql.MySQLError:
            return False
        return True

    def create_database(self, name: str) -> str:
        """Make an empty database and return its address."""
        self._execute(f"CREATE DATABASE {_quoted(name)} CHARACTER SET utf8mb4")
        return self.database_url(name)

    def drop_database(self, name: str) -> None:
        """Remove a database."""
        self._execute(f"DROP DATABASE IF EXISTS {_quoted(name)}")

    def _where(self) -> list[str]:
        # No defaults: the system's own server must not lend its socket, port or data.
        where = ["--no-defaults", f"--datadir={self.folder / 'data'}"]
        return [*where, "--user=root"] if os.geteuid() == 0 else where

    def _execute(self, statement: str) -> None:
        with (
            pymysql.connect(
                host=self.host, port=self.port, user=SUPERUSER, connect_timeout=ANSWER_WITHIN_SECONDS
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"

"""A real PgBouncer before a PostgreSQL: the system's, in transaction mode unless told otherwise."""

import os
from collections.abc import Mapping, Sequence
from typing import ClassVar

import psycopg

from tests.servers.postgres import ANSWER_WITHIN_SECONDS, SUPERUSER, PostgresServer
from tests.servers.program import find_program, unprivileged_account
from tests.servers.server import Server


class PgBouncerServer(Server):
    """A PgBouncer on loopback; anybody who connects is trusted."""

    name: ClassVar[str] = "pgbouncer"

    def __init__(
        self, postgres: PostgresServer, *, mode: str = "transaction", options: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(account=unprivileged_account())
        self._program = find_program("pgbouncer")
        self._postgres = postgres
        # Few connections to the server, so that callers meet on them.
        self._options = {"pool_mode": mode, "default_pool_size": "3", **(options or {})}

    @property
    def url(self) -> str:
        """The database that is always there."""
        return self.database_url(SUPERUSER)

    def database_url(self, database: str) -> str:
        """A database's address for psycopg, through the pooler."""
        return f"postgresql://{SUPERUSER}@{self.host}:{self.port}/{database}"

    def url_of(self, url: str) -> str:
        """The way to a database of the server, through the pooler."""
        return self.database_url(url.rpartition("/")[2])

    def prepare(self) -> None:
        (self.folder / "users.txt").write_text(f'"{SUPERUSER}" ""\n')

    def command(self) -> Sequence[str]:
        settings = {
            "listen_addr": self.host,
            "listen_port": str(self.port),
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": str(self.folder / "users.txt"),
            "pidfile": str(self.folder / "pid"),
            **self._options,
        }
        lines = ["[databases]", f"* = host={self._postgres.host} port={self._postgres.port}", "[pgbouncer]"]
        configuration = self.folder / "pgbouncer.ini"
        configuration.write_text("\n".join([*lines, *(f"{name} = {value}" for name, value in settings.items()), ""]))
        if self._account is not None:
            os.chown(configuration, self._account.uid, self._account.gid)
        return [str(self._program), str(configuration)]

    def is_ready(self) -> bool:
        try:
            with psycopg.connect(self.url, connect_timeout=ANSWER_WITHIN_SECONDS, prepare_threshold=None) as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        except psycopg.Error:
            return False

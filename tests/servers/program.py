"""A server's program on this machine: where it is, and as whom it may run.

Nothing is downloaded or installed here; a program that is not there is a `ProgramMissingError`.
"""

import os
import pwd
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.shared_data import missing

# Debian keeps daemons where an ordinary user's path does not look.
DAEMON_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/sbin")
UNPRIVILEGED = "nobody"


class ProgramMissingError(RuntimeError):
    """A program is not on this machine, or cannot do what is asked of it."""

    def __init__(self, name: str, *, lacking: str = "") -> None:
        lack = f"was built without {lacking}" if lacking else "is not on this machine"
        super().__init__(f"{name} {lack}: run ./run services or install it")


@dataclass(frozen=True, slots=True)
class Account:
    """The user that a server runs as, when it refuses to run as root."""

    uid: int
    gid: int


def find_program(name: str, *, folders: Iterable[str | Path] = ()) -> Path:
    """The program in one of the folders, on the path, or among the daemons."""
    search = [*map(str, folders), *os.environ.get("PATH", os.defpath).split(os.pathsep), *DAEMON_FOLDERS]
    found = shutil.which(name, path=os.pathsep.join(search))
    if found is None:
        raise ProgramMissingError(name)
    return Path(found)


def unprivileged_account() -> Account | None:
    """Whom to run as instead of root; None when this process is not root."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam(UNPRIVILEGED)
    return Account(uid=entry.pw_uid, gid=entry.pw_gid)


def reachable_by_others(program: Path) -> bool:
    """Whether any user may run the program: each folder above it must let strangers pass."""
    real = program.resolve()
    return bool(real.stat().st_mode & 0o001) and all(folder.stat().st_mode & 0o001 for folder in real.parents)


@contextmanager
def program_or_skip() -> Iterator[None]:
    """Turn a missing program into a skip, or a failure where CI=true."""
    try:
        yield
    except ProgramMissingError as error:
        missing(f"a server ({error})")

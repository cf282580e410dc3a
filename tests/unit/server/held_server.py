"""A service in a process of its own, whose model is held while a file is there."""

import os
from pathlib import Path

from msgspec.structs import replace

from sameas.server import serving
from sameas.server.app import open_entry
from sameas.settings import Settings
from tests.unit.server.house import Hold


class FileHold(Hold):
    """Held while the file `hold` is in the home folder; says in `reached` that it waits."""

    def __init__(self, home: Path) -> None:
        super().__init__()
        self._file = home / "hold"
        self._said = home / "reached"

    def is_held(self, asked: int) -> bool:
        held = asked > self.after and self._file.exists()
        if held:
            self._said.touch()
        return held


def main(home: Path, port: int, store: str, lease: float, grace: float) -> None:
    """Serve until killed or stopped; what is logged goes to a file."""
    log = os.open(home / f"log-{port}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    settings = Settings(home=home, port=port, store=store, lease=lease, grace=grace, extractor="lexicon")
    entry = replace(open_entry(settings), models=FileHold(settings.home).extractor)
    serving.serve(settings, quiet=True, entry=entry)

"""How long a newcomer waits: `./run demo` in a new folder, with what pip and uv downloaded earlier, and what it takes on disk."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from tests.servers.program import find_program

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 3
DEBIAN = "/usr/bin:/bin"
MOST_SECONDS, MOST_MEGABYTES = 30, 400


def bare_path(folder: Path) -> str:
    """A PATH with Debian's programs and Python only: this Python, linked in the folder, where Debian's is missing or old."""
    python = shutil.which("python3", path=DEBIAN)
    question = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"
    if python and subprocess.run([python, "-c", question], capture_output=True, check=False).returncode == 0:
        return DEBIAN
    (folder / "python3").symlink_to(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}")
    return f"{folder}:{DEBIAN}"


def main() -> None:
    seconds = []
    git = find_program("git")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as programs:
        environment = {"HOME": os.environ["HOME"], "PATH": bare_path(Path(programs))}
        for number in range(ROUNDS + 1):
            clone = Path(folder) / str(number)
            subprocess.run([git, "clone", "--quiet", ROOT, clone], check=True)
            began = perf_counter()
            subprocess.run([clone / "run", "sameas", "--help"], env=environment, check=True, capture_output=True)
            seconds.append(perf_counter() - began)
            size = sum(path.lstat().st_blocks for path in (clone / ".venv").rglob("*")) * 512 / 1e6
            shutil.rmtree(clone)
    # The first may have to download.
    first, later = seconds[0], median(seconds[1:])
    print(f"ready, the first time here      {first:6.1f} s")
    print(
        f"ready, with warm caches         {later:6.1f} s  (at most {MOST_SECONDS} s: {'yes' if later <= MOST_SECONDS else 'MISSED'})"
    )
    print(
        f"on disk                         {size:6.0f} MB (at most {MOST_MEGABYTES} MB: {'yes' if size <= MOST_MEGABYTES else 'MISSED'})"
    )

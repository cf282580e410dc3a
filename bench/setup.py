"""How long a newcomer waits: `./run demo` in a new folder, with what pip and uv downloaded earlier, and what it takes on disk."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 3
MOST_SECONDS, MOST_MEGABYTES = 30, 400


def main() -> None:
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {"HOME": os.environ["HOME"], "PATH": "/usr/bin:/bin"}
        for number in range(ROUNDS + 1):
            clone = Path(folder) / str(number)
            subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
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

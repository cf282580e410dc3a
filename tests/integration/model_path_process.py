"""The model path in a process of its own, to be killed: `... model_path_process URL HOME CHUNKS`."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sameas.extraction.runs.service import Extraction

from .model_path import document, model_path

ROOT = Path(__file__).resolve().parents[2]


async def extract(url: str, home: str, chunks: int) -> Extraction:
    """Extract with leases that end soon after a kill."""
    async with model_path(url, Path(home), lease=1.0) as path:
        return await path.extract(document(chunks))


@contextmanager
def killed_at_the_end(url: str, home: Path, chunks: int) -> Iterator[None]:
    """A process that extracts while the block lasts."""
    command = [sys.executable, "-m", "tests.integration.model_path_process", url, str(home), str(chunks)]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            yield
        finally:
            process.kill()
            process.wait(10)


if __name__ == "__main__":
    asyncio.run(extract(sys.argv[1], sys.argv[2], int(sys.argv[3])))

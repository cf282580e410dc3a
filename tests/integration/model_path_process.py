"""The model path in a process of its own, to be killed: `... model_path_process URL HOME CHUNKS`."""

import asyncio
import sys
from pathlib import Path

from sameas.extraction.service import Extraction

from .model_path import document, model_path


async def extract(url: str, home: str, chunks: int) -> Extraction:
    """Extract with leases that end soon after a kill."""
    async with model_path(url, Path(home), lease=1.0) as path:
        return await path.extract(document(chunks))


if __name__ == "__main__":
    asyncio.run(extract(sys.argv[1], sys.argv[2], int(sys.argv[3])))

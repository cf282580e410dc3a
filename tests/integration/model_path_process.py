"""The model path in a process of its own, to be killed: `python -m tests.integration.model_path_process URL HOME CHUNKS`."""

import asyncio
import sys
from pathlib import Path

from .model_path import document, model_path


async def main(url: str, home: str, chunks: int) -> None:
    async with model_path(url, Path(home), lease=1.0) as path:
        done = await path.extract(document(chunks))
        print(done.metadata.status, len(done.graph.relations))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))

"""The simple store of docs/conformance.md, on a real Redis and in two processes."""

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs" / "conformance.md"

WORKER = """
import os, sys

def handle(payload):
    os.write(1, b"ran\\n")
    return {"by": payload["by"]}

EXAMPLE
print(processor.process({"by": "anybody"}).result["by"], flush=True)
"""


def test_a_second_process_gets_the_first_ones_result(redis_url):
    example = DOCS.read_text().split("```python\n", 1)[1].split("```", 1)[0]
    assert "redis://localhost:6379/0" in example
    source = WORKER.replace("EXAMPLE", example.replace("redis://localhost:6379/0", redis_url)).replace(
        "store=lift", 'scope="handle", store=lift'
    )
    said = [
        subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert said == ["ran\nanybody\n", "anybody\n"]

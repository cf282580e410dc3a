"""Where the reference data lies. A laptop without it skips the test; CI fails."""

import os
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


def shared(*parts: str) -> Path:
    """A file or folder of the shared data, or a skip that says what is missing."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        missing(f"reference data {'/'.join(parts)}")
    return path


def missing(what: str) -> None:
    """Say that a test cannot run here: a skip on a laptop, a failure where CI=true."""
    message = f"{what} is not available on this machine"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)

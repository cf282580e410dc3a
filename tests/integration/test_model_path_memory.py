"""A long text takes no more memory than a short one, beyond what is found in it."""

import subprocess
import sys

import msgspec

# A question is 2,500 bytes and its chunk a hundred; a call that is remembered by the limiter would be 110. Python's own
# cache of methods, which has a bound, takes some 40 at this length.
MOST_LEFT_BEHIND = 90
MOST_DURING_A_RUN = 250


def test_nothing_is_kept_of_a_chunk_that_is_done() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "tests.integration.model_path_memory", "50", "350"],
        capture_output=True,
        text=True,
        check=True,
    )
    bytes_a_chunk = msgspec.json.decode(shown.stdout, type=dict[str, float])
    assert bytes_a_chunk["after"] < MOST_LEFT_BEHIND
    assert bytes_a_chunk["during"] < MOST_DURING_A_RUN

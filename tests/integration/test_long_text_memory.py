"""Memory does not grow with the number of places that a text gives for what is found in it."""

import json
import subprocess
import sys

# It was 3,600 bytes when every place was an object until the end. What is left is what buffers take until they are full.
MOST_FOR_A_MENTION = 400


def run(sentences: int) -> dict[str, int]:
    shown = subprocess.run(
        [sys.executable, "-m", "tests.integration.long_text_memory", str(sentences)],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, int] = json.loads(shown.stdout)
    return found


def test_a_text_that_says_the_same_more_often_takes_no_more_memory() -> None:
    short, long = run(1500), run(6000)
    peaks, mentions = [found.pop("peak") for found in (short, long)], [found.pop("mentions") for found in (short, long)]
    assert mentions == [4500, 18_000]
    assert short == long == {"entities": 90, "relations": 200, "rejected": 200}
    assert (peaks[1] - peaks[0]) / (mentions[1] - mentions[0]) < MOST_FOR_A_MENTION

"""What a replay does not need is not loaded for it."""

import subprocess
import sys

LOADED = """
import sys
import sameas.cli.extract
print(*(name for name in sys.modules if name.partition(".")[0] in ("sameas", "rapidfuzz", "numpy", "scipy", "rich")))
"""


def test_the_extract_command_loads_no_extractor_before_a_chunk_needs_one():
    said = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout.split()
    assert "sameas.extraction.extractors.embedded" in said
    heavy = (
        "sameas.extraction.extractors.lexicon",
        "sameas.extraction.extractors.learned",
        "sameas.extraction.extractors.learning",
        "rapidfuzz",
        "numpy",
    )
    assert [name for name in said if name.startswith(heavy)] == []


def test_a_model_s_options_load_nothing_that_learns_or_reads():
    script = LOADED.replace("sameas.cli.extract", "sameas.cli.prompted")
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "sameas.extraction.extractors.prompted" in said
    heavy = (
        "sameas.extraction.extractors.learned",
        "sameas.extraction.extractors.learning",
        "sameas.extraction.extractors.lexicon",
        "sameas.extraction.extractors.prompted.reading",
        "numpy",
    )
    assert [name for name in said if name.startswith(heavy)] == []

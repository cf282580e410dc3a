"""The package with the reader's weights: whole, small enough, and named by a digest."""

import hashlib
import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[4] / "reader" / "sameas_reader"


def test_the_manifest_names_every_file_as_it_is():
    told = json.loads((FOLDER / "manifest.json").read_text("utf-8"))
    files = {path.name for path in FOLDER.iterdir() if path.suffix in {".npz", ".json"}} - {"manifest.json"}
    assert set(told["files"]) == files
    for name, digest in told["files"].items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest
    assert hashlib.sha256(json.dumps(told["files"], sort_keys=True).encode()).hexdigest() == told["digest"]


def test_the_weights_are_at_most_90_megabytes_in_files_of_at_most_16_mebibytes():
    sizes = [path.stat().st_size for path in FOLDER.iterdir() if path.is_file()]
    assert sum(sizes) <= 90_000_000
    assert max(sizes) <= 16 * 2**20

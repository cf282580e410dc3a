"""What a killed process left goes; what a living one has stays."""

import os
import subprocess
import sys
import time

from sameas.server.leftovers import SETTLES, journal_folders, own, sweep
from sameas.server.runs.pending_runs import PendingRun, PendingRuns
from sameas.server.schemas import ExtractRequest

OWNER = """
import sys, time
from pathlib import Path
from sameas.server.leftovers import own
folder = Path(sys.argv[1])
handle = own(folder)
(folder / "run.jsonl").write_text("Anna Stone")
print("owns", flush=True)
time.sleep(600)
"""


def test_what_nobody_writes_any_more_goes_and_requests_stay(tmp_path):
    promises = PendingRuns(tmp_path)
    request = ExtractRequest(text="Anna Stone works.", ontology_id="company")
    promises.keep(PendingRun(tenant="", key="sha256-" + "a" * 64, request=request))
    left = [
        tmp_path / "requests" / "_" / f".sha256-{'b' * 64}.json-0123456789abcdef.writing",
        tmp_path / "cache" / "ontologies" / ".writing-x1",
        tmp_path / "cache" / "batches" / "x.batch.writing",
    ]
    for file in left:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("Anna Stone")
    assert sweep(tmp_path) == 0
    assert sweep(tmp_path, now=time.time() + SETTLES + 1) == 3
    assert not any(file.exists() for file in left)
    assert promises.has("", "sha256-" + "a" * 64)


def test_the_journals_of_a_killed_process_go_and_those_of_others_stay(tmp_path):
    folders = [journal_folders(tmp_path) / name for name in ("killed", "alive")]
    owners = [
        subprocess.Popen([sys.executable, "-c", OWNER, str(folder)], stdout=subprocess.PIPE, text=True)
        for folder in folders
    ]
    mine = journal_folders(tmp_path) / "mine"
    handle = own(mine)
    try:
        for owner in owners:
            assert owner.stdout.readline() == "owns\n"
        assert sweep(tmp_path) == 0
        owners[0].kill()
        owners[0].wait()
        assert sweep(tmp_path) == 1
        assert [folder.exists() for folder in (*folders, mine)] == [False, True, True]
    finally:
        os.close(handle)
        for owner in owners:
            owner.kill()
            owner.wait()
            owner.stdout.close()

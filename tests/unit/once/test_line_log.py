import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sameas.once.line_log import LineLog
from tests.servers.full_disk import files_end_at

# Many pages, so that a kill ends a write in the middle often enough.
_FILLING = "x" * 400_000

WRITER = """
import json, os, sys
from sameas.once.line_log import LineLog
lines = LineLog(sys.argv[1])
for number in range(1_000_000):
    lines.append(json.dumps([os.getpid(), number, "x" * 400_000]).encode())
    os.write(1, b"%d %d\\n" % (os.getpid(), number))
"""


def test_a_line_follows_what_a_killed_process_left_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    killed = (
        "import os, sys; os.write(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), b'[1, 2'); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", killed, str(path)], check=False).returncode == -signal.SIGKILL
    with LineLog(path) as lines:
        lines.append(b"[3]", b"[4]")
        lines.append(b"[5]")
    assert path.read_bytes() == b"[1, 2\n[3]\n[4]\n[5]\n"


def test_a_whole_line_without_its_newline_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"[1]")
    with LineLog(path) as lines:
        lines.append(b"[2]")
    assert path.read_bytes() == b"[1]\n[2]\n"


def test_another_process_ends_the_line_of_one_that_was_killed_while_both_had_the_file_open(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    with LineLog(path) as lines:
        lines.append(b"[1]")
        with path.open("ab") as torn:
            torn.write(b"[2, ")
        lines.append(b"[3]")
    assert path.read_bytes() == b"[1]\n[2, \n[3]\n"


def test_of_processes_that_are_killed_as_they_write_every_told_line_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    chance = random.Random(7)
    told: set[tuple[int, int]] = set()
    for _ in range(12):
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        for writer in writers:
            assert writer.stdout is not None
            for _ in range(chance.randrange(1, 9)):
                process, number = writer.stdout.readline().split()
                told.add((int(process), int(number)))
            writer.kill()
        for writer in writers:
            rest, _ = writer.communicate(timeout=60)
            told |= {(int(process), int(number)) for process, number in map(str.split, rest.splitlines(keepends=False))}
    whole: set[tuple[int, int]] = set()
    for line in path.read_text().splitlines():
        try:
            process, number, filling = json.loads(line)
        except json.JSONDecodeError:
            # A torn line stands alone: the beginning of one, and nothing of another.
            assert line.count("[") <= 1
            continue
        assert filling == _FILLING
        whole.add((process, number))
    assert told <= whole


def test_a_line_for_which_there_is_no_room_is_an_error_and_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    with LineLog(path) as lines, LineLog(path) as others:
        with files_end_at(10):
            lines.append(b"[1]")
            with pytest.raises(OSError, match=r"took 6 of 8 bytes: is the disk full"):
                lines.append(b"[2, 3,4]"[:7])
            with pytest.raises(OSError, match="too large"):
                others.append(b"[5]")
        others.append(b"[6]")
        lines.append(b"[7]")
    assert path.read_bytes() == b"[1]\n[2, 3,\n[6]\n[7]\n"


def test_a_forked_child_waits_for_its_parent_and_the_parent_for_it(tmp_path: Path) -> None:
    # The child's lock is its own: with the parent's it would look at lines that the parent has half written.
    path = tmp_path / "lines"
    with LineLog(path) as lines:
        lines.append(b"[0]")
        child = os.fork()
        if not child:
            try:
                for _ in range(200):
                    lines.append(b"c" * 100_000)
            finally:
                os._exit(0)
        for _ in range(200):
            lines.append(b"p" * 100_000)
        os.waitpid(child, 0)
    found = path.read_bytes().splitlines()
    assert sorted(found) == [b"[0]", *[b"c" * 100_000] * 200, *[b"p" * 100_000] * 200]


def test_a_closed_file_is_refused(tmp_path: Path) -> None:
    lines = LineLog(tmp_path / "lines", fsync=True)
    lines.append(b"[1]")
    lines.close()
    lines.close()
    with pytest.raises(ValueError, match="was closed"):
        lines.append(b"[2]")
    assert lines.path.read_bytes() == b"[1]\n"
    assert lines.path.stat().st_mode & 0o077 == 0

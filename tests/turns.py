"""A plugin for pytest with which several processes share the files of tests: each takes the next that nobody has.

So the one that gets the quick files takes more of them, nobody has to say which half a new file belongs to, and a
server that a process has started is there for all of its files. A file is taken by making one of its name in the folder
that `--turns` names; a process that dies with it does not end well, and neither does the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

# Files with long tests begin first: otherwise one process would be at them when the others have nothing left.
LONGEST: Final = (
    "test_cluster.py",
    "test_crashes.py",
    "test_http_browser.py",
    "test_setup.py",
    "test_storm.py",
    "test_web_app.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--turns", metavar="FOLDER", help="share the files with the others that were given this folder")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    folder = session.config.getoption("turns")
    if folder is None or session.testsfailed or session.config.getoption("collectonly"):
        return None
    for group in taken(session.items, lambda path: _is_ours(Path(folder), path)):
        for number, item in enumerate(group, 1):
            # After a file nobody knows yet which is the next: all that is for the whole session is kept.
            following: Any = group[number] if number < len(group) else session
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
    return True


def taken(items: list[Any], take: Callable[[Path], bool]) -> Iterator[list[Any]]:
    """The items of each file that we take, the longest files first."""
    files: dict[Path, list[Any]] = {}
    # pytest may have put items of two files in turns, for a fixture with parameters.
    for item in items:
        files.setdefault(item.path, []).append(item)
    for path, group in sorted(files.items(), key=lambda file: file[0].name not in LONGEST):
        if take(path):
            yield group


def _is_ours(folder: Path, path: Path) -> bool:
    name = path.as_posix().replace("/", "%")
    try:
        (folder / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

"""ARCHITECTURE.md follows five ways through the house, each function named is entered, in that order; and the tree is
as it says.
"""

import re
from pathlib import Path

import pytest

from bench.rooms import shared_names
from tests.ways import SOURCE, WAYS

PAGE = Path(__file__).resolve().parents[2] / "ARCHITECTURE.md"
_STEP = re.compile(r"^\d+\. `([\w/]+\.py):([\w.]+)`", re.MULTILINE)


def described(way: str) -> list[str]:
    section = PAGE.read_text("utf-8").partition(f"### {way}\n")[2].partition("\n#")[0]
    return [f"{file}:{function}" for file, function in _STEP.findall(section)]


@pytest.mark.parametrize("way", WAYS)
def test_the_page_follows_the_way_that_the_code_goes(way: str, tmp_path: Path) -> None:
    steps = described(way)
    assert len(steps) >= 5, f"ARCHITECTURE.md does not follow: {way}"
    walked = WAYS[way](tmp_path).functions
    missing = [step for step in steps if step not in walked]
    assert not missing, f"{way}: the page names what is not entered: {missing}"
    order = [walked.index(step) for step in steps]
    assert order == sorted(order), f"{way}: the page's order is not the code's: {steps}"


def test_every_file_that_the_page_names_is_there() -> None:
    root = PAGE.parent
    there = {
        f"/{path.relative_to(root).as_posix()}" for folder in ("src", "tests") for path in (root / folder).rglob("*.*")
    }
    named = re.findall(r"`([\w/]+\.(?:py|lua|js|sql))[:`]", PAGE.read_text("utf-8"))
    assert len(named) > 80
    assert [name for name in named if not any(path.endswith(f"/{name}") for path in there)] == []


def test_every_folder_that_the_page_names_is_there() -> None:
    root = PAGE.parent
    named = re.findall(r"`([\w/]+)/`", PAGE.read_text("utf-8"))
    places = (root, root / "src" / "sameas", root / "src" / "sameas" / "extraction")
    assert named
    assert [name for name in named if not any((place / name).is_dir() for place in places)] == []


def test_every_package_is_in_the_picture() -> None:
    page = PAGE.read_text("utf-8")
    packages = {path.parent.name for path in (PAGE.parent / "src" / "sameas").glob("*/__init__.py")}
    assert not {name for name in packages if not re.search(rf"\b{name}\b", page)}


def test_no_two_classes_of_a_package_share_a_name() -> None:
    assert shared_names(sorted(SOURCE.rglob("*.py"))) == []

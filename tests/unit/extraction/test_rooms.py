"""The rooms of extraction say which of their modules may be used from outside, and nothing else is."""

import ast
import re
from pathlib import Path

import pytest

import sameas

SOURCE = Path(sameas.__file__).parent
EXTRACTION = SOURCE / "extraction"
ROOMS = sorted(path.parent.name for path in EXTRACTION.glob("*/__init__.py"))
# These two only export.
EXPORTING = ("evaluation", "outputs")


def used_from_outside(room: str) -> set[str]:
    """The modules and packages of a room that other packages import from, by their first name inside of the room."""
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        if path.is_relative_to(EXTRACTION):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                match = re.match(rf"sameas\.extraction\.{room}\.(\w+)", node.module)
                found |= {match[1]} if match else set()
    return found


@pytest.mark.parametrize("room", [room for room in ROOMS if room not in EXPORTING])
def test_a_room_names_what_may_be_used_from_outside_and_all_of_it_is(room: str) -> None:
    text = (EXTRACTION / room / "__init__.py").read_text("utf-8")
    named = set(re.findall(r"`(\w+)`", text.partition("From outside:")[2]))
    assert named
    assert used_from_outside(room) == named


def test_the_rooms_are_those_of_the_docstring() -> None:
    text = ast.get_docstring(ast.parse((EXTRACTION / "__init__.py").read_text("utf-8"))) or ""
    assert sorted(re.findall(r"\w+", text.partition("data:")[2].partition(".")[0])) == ROOMS

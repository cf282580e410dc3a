"""Tables on a terminal and elsewhere."""

import io
import re

import pytest

from sameas.cli.tables import print_table, short_key

ROWS = [["a[b]", "1"], ["longer", "20"]]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_elsewhere_columns_are_aligned_and_numbers_stand_right():
    stream = io.StringIO()
    print_table(("name", "count"), ROWS, to=stream, title="Things")
    assert stream.getvalue() == "Things\nname    count\na[b]        1\nlonger     20\n"


def test_a_terminal_gets_a_drawn_table_and_brackets_are_no_markup():
    stream = Terminal()
    print_table(("name", "count"), ROWS, to=stream)
    assert "a[b]" in stream.getvalue()
    assert "───" in stream.getvalue()


def test_wide_characters_take_two_columns():
    stream = io.StringIO()
    print_table(("name", "kind"), [["蓝石", "x"], ["cafe\u0301", "y"]], to=stream)
    assert stream.getvalue().splitlines() == ["name  kind", "蓝石  x", "cafe\u0301  y"]


def test_a_table_without_rows_has_its_head():
    stream = io.StringIO()
    print_table(("name", "count"), [], to=stream)
    assert stream.getvalue() == "name  count\n"


def test_words_are_folded_at_blanks_and_nothing_is_lost(monkeypatch):
    monkeypatch.setenv("COLUMNS", "24")
    stream = Terminal()
    print_table(("name", "said"), [["Ann", "she works for Stonebridge Robotics in Rome"]], to=stream)
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 24
    assert " ".join(line[5:].strip() for line in lines[2:]) == "she works for Stonebridge Robotics in Rome"


@pytest.mark.parametrize("names", ["annual-report-of-a-company-2024.pdf", "文件" * 20])
def test_every_line_of_a_terminal_fits_also_where_a_name_has_no_blank(monkeypatch, names):
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    print_table(("document", "status", "key"), [[names, "replayed", "bbbe491f7404"]], to=stream, whole=("key",))
    lines = stream.getvalue().splitlines()
    assert max(sum(1 + (sign > "\u2e80") for sign in line) for line in lines) <= 40
    assert names in "".join(line[: 40 - 22].split(" ")[0] for line in lines[2:])


def test_a_table_of_runs_fits_eighty_columns_and_breaks_neither_numbers_nor_keys(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    head = ("document", "status", "entities", "relations", "rejected", "chunks", "seconds", "key")
    row = ["annual-report-of-a-company-2024.pdf", "complete", "1234", "4321", "17", "12", "103.52", "bbbe491f7404"]
    print_table(head, [row], to=stream, whole=("status", "key"))
    lines = stream.getvalue().splitlines()
    assert max(len(re.sub(r"\x1b\[\d*m", "", line)) for line in lines) <= 80
    for cell in row[1:]:
        assert cell in stream.getvalue()


def test_a_short_key_is_what_other_commands_take():
    assert short_key("sha256-" + "ab" * 32) == "ab" * 6

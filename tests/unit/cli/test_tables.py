"""Tables on a terminal and elsewhere."""

import io

from sameas.cli.tables import print_table

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
    assert "━" in stream.getvalue()


def test_wide_characters_take_two_columns():
    stream = io.StringIO()
    print_table(("name", "kind"), [["蓝石", "x"], ["cafe\u0301", "y"]], to=stream)
    assert stream.getvalue().splitlines() == ["name  kind", "蓝石  x", "cafe\u0301  y"]


def test_plain_keeps_rich_out():
    stream = Terminal()
    print_table(("name", "count"), ROWS, to=stream, plain=True)
    assert "━" not in stream.getvalue()


def test_a_table_without_rows_has_its_head():
    stream = io.StringIO()
    print_table(("name", "count"), [], to=stream)
    assert stream.getvalue() == "name  count\n"

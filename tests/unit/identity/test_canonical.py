"""Canonical JSON: the published vectors, the documented forms, and errors that name the place."""

import dataclasses
import json
import struct
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import cast
from uuid import UUID

import msgspec
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, RootModel

from sameas.identity.canonical import MAX_DEPTH, canonical_json, compile_exclusions, join, parse_json, to_json
from sameas.identity.errors import NotCanonical
from tests.shared_data import shared


@pytest.mark.parametrize("name", ["arrays", "french", "structures", "unicode", "values", "weird"])
def test_published_vectors_give_their_published_bytes(name):
    text = shared("vectors", "rfc8785", "input", f"{name}.json").read_bytes()
    assert canonical_json(parse_json(text)) == shared("vectors", "rfc8785", "output", f"{name}.json").read_bytes()


def test_ten_thousand_published_numbers_are_written_as_published():
    rows = shared("vectors", "rfc8785", "numbers.txt").read_text().splitlines()
    assert len(rows) == 10_000
    for row in rows:
        bits, expected = row.split(",")
        number = struct.unpack(">d", bytes.fromhex(bits.zfill(16)))[0]
        assert canonical_json(number).decode() == expected


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@given(json_values)
def test_bytes_equal_those_of_the_reference_library(value):
    assert canonical_json(value) == rfc8785.dumps(value)


@given(json_values.filter(lambda value: _fits(value)))
def test_what_is_canonical_parses_back_to_the_same_bytes(value):
    once = canonical_json(value)
    assert canonical_json(parse_json(once)) == once


def _fits(value):
    """Whether a reader of the canonical form sees no integer beyond 2^53, which it would have to refuse."""
    try:
        return parse_json(rfc8785.dumps(value)) is not None and bool(canonical_json(parse_json(rfc8785.dumps(value))))
    except NotCanonical:
        return False


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Mode(StrEnum):
    FAST = "fast"


@dataclasses.dataclass
class Point:
    x: int
    y: Decimal


class Order(BaseModel):
    id: UUID
    at: datetime


class Numbers(RootModel[list[int]]):
    pass


class Row(msgspec.Struct):
    a: int


MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=timezone(timedelta(hours=2)))
ID = UUID("0189B3C0-0000-7000-8000-0123456789AB")


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (Decimal("1.50"), "15E-1"),
        (Decimal("1.5"), "15E-1"),
        (Decimal(-100), "-1E2"),
        (Decimal("0.000"), "0E0"),
        (Decimal("-0"), "0E0"),
        (Decimal("1E+1000000"), "1E1000000"),
        (MOMENT, "2026-01-02T01:04:05.000678Z"),
        (MOMENT.replace(tzinfo=UTC, microsecond=0), "2026-01-02T03:04:05.000000Z"),
        (MOMENT.replace(tzinfo=None), "2026-01-02T03:04:05.000678"),
        (date(2026, 1, 2), "2026-01-02"),
        (ID, "0189b3c0-0000-7000-8000-0123456789ab"),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Mode.FAST, "fast"),
        (b"\x00\xff", "AP8="),
        (bytearray(b"a"), "YQ=="),
        (memoryview(b"a"), "YQ=="),
        (Point(1, Decimal(2)), {"x": 1, "y": "2E0"}),
        (Order(id=ID, at=MOMENT), {"id": str(ID), "at": "2026-01-02T01:04:05.000678Z"}),
        (Numbers([1, 2]), {"root": [1, 2]}),
        (Row(1), {"a": 1}),
        ((1, 2), [1, 2]),
        (1.0, 1),
        (-0.0, 0),
        (1e16, 10_000_000_000_000_000),
    ],
)
def test_documented_forms(value, form):
    assert json.loads(canonical_json({"value": value})) == {"value": form}


def test_equal_instants_in_two_zones_are_one():
    assert canonical_json(MOMENT) == canonical_json(MOMENT.astimezone(UTC))


def test_composed_and_decomposed_letters_stay_different():
    assert canonical_json("\u00e9") != canonical_json("e\u0301")


def itself():
    value = {"a": [1, {"b": None}]}
    value["a"][1]["b"] = value
    return value


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "path", "said"),
    [
        ({"a": [0, float("nan")]}, "a[1]", "nan"),
        ({"a": {"b": float("inf")}}, "a.b", "inf"),
        ({"n": 2**53}, "n", "2^53"),
        ({"n": [-(2**53)]}, "n[0]", "2^53"),
        (["ok", "\ud800"], "[1]", "lone surrogate"),
        ({"x": {"\udfff": 1}}, "x['\\udfff']", "lone surrogate"),
        ({"when": {"tags": {1, 2}}}, "when.tags", "set"),
        ({"o": object()}, "o", "object"),
        ({"f": {"g": len}}, "f.g", "builtin"),
        ({"t": timedelta(1)}, "t", "timedelta"),
        ({"d": Decimal("NaN")}, "d", "Decimal"),
        ({"p": Point(1, cast("Decimal", float("nan")))}, "p.y", "nan"),
        ({"k": {3: 1}}, "k.3", "member name"),
        ({"a b": [object()]}, "['a b'][0]", "object"),
        (itself(), "a[1].b", "contains itself"),
    ],
)
def test_what_has_no_certain_form_is_refused_with_its_path(value, path, said):
    with pytest.raises(NotCanonical, match=said.replace("^", r"\^")) as refused:
        canonical_json(value)
    assert refused.value.path == path
    assert str(refused.value).startswith(f"{path}: ")


def test_the_same_object_twice_is_no_cycle():
    shared_part = {"x": 1}
    assert canonical_json([shared_part, shared_part]) == b'[{"x":1},{"x":1}]'


def test_depth_is_bounded_and_said():
    assert canonical_json(deep(MAX_DEPTH - 1))
    with pytest.raises(NotCanonical, match="more than 200 deep"):
        canonical_json(deep(MAX_DEPTH + 1))


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        ('{"a": [{"b": 1, "c": 2, "b": 3}]}', "a[0]", "member 'b' twice"),
        ('{"a": NaN}', "a", "NaN"),
        ("[1, -Infinity]", "[1]", "-Infinity"),
        ("{'a': 1}", "", "line 1, column 2"),
        ('{"a": 1} {', "", "Extra data"),
        ("", "", "not JSON"),
        (b'{"a": "\xff"}', "", "not UTF-8 at byte 7"),
        ("[" * 100_000, "", "too deeply"),
    ],
)
def test_parsing_is_strict_and_names_the_place(text, path, said):
    with pytest.raises(NotCanonical, match=said) as refused:
        parse_json(text)
    assert refused.value.path == path


def test_the_words_nan_and_infinity_may_stand_in_strings():
    assert parse_json('{"a": "NaN Infinity"}') == {"a": "NaN Infinity"}


ORDER = {
    "id": 1,
    "sent_at": "x",
    "meta": {"trace": "t", "shop": "s"},
    "items": [{"sku": "a", "added_at": 1}, {"sku": "b", "added_at": 2}],
    "grid": [[{"x": 1, "y": 2}]],
    "dotted.name": {"a": 1},
}


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        ({"sent_at", "meta", "items", "grid", "dotted\\.name"}, {"id": 1}),
        ({"meta.trace"}, ORDER | {"meta": {"shop": "s"}}),
        ({"meta", "meta.trace"}, {k: v for k, v in ORDER.items() if k != "meta"}),
        ({"meta.trace", "meta"}, {k: v for k, v in ORDER.items() if k != "meta"}),
        ({"items[].added_at"}, ORDER | {"items": [{"sku": "a"}, {"sku": "b"}]}),
        ({"items[]"}, ORDER | {"items": []}),
        ({"grid[][].y"}, ORDER | {"grid": [[{"x": 1}]]}),
        ({"nothing.like.this"}, ORDER),
        ({"dotted\\.name.a"}, ORDER | {"dotted.name": {}}),
    ],
)
def test_excluded_fields_do_not_count(paths, left):
    assert to_json(ORDER, exclude_fields=paths) == left


def test_a_list_at_the_top_is_excluded_by_element():
    assert to_json([{"a": 1, "b": 2}], exclude_fields=["[].b"]) == [{"a": 1}]


def test_an_excluded_field_may_hold_anything():
    assert canonical_json({"a": 1, "socket": object()}, exclude_fields={"socket"}) == b'{"a":1}'


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a[0]", "a[", "a]b", "a..b", "[]a"])
def test_malformed_paths_are_refused(path):
    with pytest.raises(ValueError, match="is not a path"):
        compile_exclusions([path])


def test_one_string_is_not_a_collection_of_paths():
    with pytest.raises(TypeError, match="collection"):
        canonical_json({}, exclude_fields="sent_at")


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
)
def test_different_parts_never_join_to_the_same_bytes(first, second):
    assert (join(*first) == join(*second)) == (first == second)

"""The form of a value: RFC 8785 for JSON, a tag for everything else, and never one form for two things."""

import collections
import dataclasses
import itertools
import json
import struct
from collections import OrderedDict
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, IntFlag, StrEnum
from types import MappingProxyType
from typing import NamedTuple, cast
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from sameas.identity.canonical import MAX_DEPTH, canonical_json, parse_json, quick_form
from sameas.identity.errors import NotCanonical
from sameas.identity.form import form_of
from sameas.identity.key import content_key, content_keys, fingerprint, former_fingerprint
from tests.shared_data import shared

texts = st.text(st.characters(exclude_categories=["Cs"]))
# Names on both sides of the surrogates, where code points and UTF-16 units sort differently.
names = texts | st.text(st.sampled_from("a\u00e9\ud7ff\ue000\uffff\U00010000\U0010ffff"), max_size=2)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([1.0, -0.0, 1e15, 1e16, 1e21, 1e-5, 1e-6, 1e-7, 123456789012345.5, 2.5e-5])
    | texts
    | st.text('"\\\n\te0.1:,[]{}\x00\x1f\x7f'),
    lambda inner: st.lists(inner) | st.dictionaries(names, inner),
    max_leaves=20,
)


@given(json_values)
@settings(max_examples=500)
def test_json_has_the_bytes_of_the_reference_library(value):
    expected = rfc8785.dumps(value)
    assert form_of(value) == (expected, True)
    assert canonical_json(value) == expected
    assert quick_form(value) in (expected, None)


@pytest.mark.parametrize("name", ["arrays", "french", "structures", "unicode", "values", "weird"])
def test_published_vectors_have_their_published_bytes(name):
    value = parse_json(shared("vectors", "rfc8785", "input", f"{name}.json").read_bytes())
    assert form_of(value).data == shared("vectors", "rfc8785", "output", f"{name}.json").read_bytes()


def test_ten_thousand_published_numbers_are_written_as_published():
    for row in shared("vectors", "rfc8785", "numbers.txt").read_text().splitlines():
        bits, expected = row.split(",")
        number = struct.unpack(">d", bytes.fromhex(bits.zfill(16)))[0]
        assert form_of([number]).data.decode() == f"[{expected}]"


def test_every_character_is_written_as_the_reference_library_writes_it():
    for code in itertools.chain(range(0xD800), range(0xE000, 0x10000), range(0x10000, 0x110000, 0x1F3)):
        text = [chr(code), {chr(code): 1}]
        assert form_of(text).data == rfc8785.dumps(text)


SMALL_ORDER = {"id": "o-1e5", "items": [{"sku": "a", "qty": 2, "price": "5.00"}], "total": 24.98, "paid": True}


@pytest.mark.parametrize(
    "value",
    [
        SMALL_ORDER,
        {"text": 'a "quoted" \\ line\n', "n": 5},
        {"name": "Zo\u00eb", "\u00e9": 1},
        {"hex": "deadbeef00e1", "at": "2026-01-01T00:00:00.000Z", "digits": "12345678901234567890"},
        [],
        None,
        "x",
    ],
)
def test_what_most_payloads_are_takes_the_quick_way(value):
    assert quick_form(value) == rfc8785.dumps(value)


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "value",
    [
        *[1.0, [1e16], {"a": -0.0}, 2**53, 10**16, (1,), {"\U00010000": 1}, {1: 2}, {None: 1}, {"a": b"YQ=="}, {1, 2}],
        *[Text("a"), [Text("a")], {Text("a"): 1}, float("nan"), "\ud800", date(2026, 1, 2), Decimal(1), UUID(int=1)],
        *[bytearray(b"a"), memoryview(b"a"), ..., print, datetime.now(UTC), OrderedDict(a=1)],
    ],
    ids=repr,
)
def test_what_is_not_plain_json_never_takes_the_quick_way(value):
    assert quick_form(value) is None


def test_depth_is_bounded_on_the_quick_way_too():
    deep = []
    for _ in range(MAX_DEPTH):
        deep = [deep]
    with pytest.raises(NotCanonical, match="200 deep"):
        form_of(deep)


@dataclasses.dataclass
class Charge:
    amount: int


@dataclasses.dataclass
class Refund:
    amount: int


class PydanticCharge(BaseModel):
    amount: int


class StructCharge(msgspec.Struct):
    amount: int


class TupleCharge(NamedTuple):
    amount: int


class TupleRefund(NamedTuple):
    amount: int


@dataclasses.dataclass
class MappedCharge(dict):
    amount: int


@dataclasses.dataclass
class MappedRefund(dict):
    amount: int


@dataclasses.dataclass
class ListedCharge(list):
    amount: int


def filled(value, **members):
    value.update(members)
    return value


def listed(value, *elements):
    value.extend(elements)
    return value


Untyped = collections.namedtuple("Untyped", ["amount"])  # noqa: PYI024


class Colour(Enum):
    RED = "red"


class Mood(Enum):
    RED = "red"


class Mode(StrEnum):
    RED = "red"


class Level(IntEnum):
    ONE = 1


class Rights(IntFlag):
    READ = 1
    WRITE = 2


DAY = date(2026, 1, 2)
MOMENT = datetime(2026, 1, 2, 3, 4, 5)
ID = UUID("0189b3c0-0000-7000-8000-0123456789ab")

# Each is different work; what could be taken for one another stands together.
DIFFERENT = [
    *[Charge(1), Refund(1), PydanticCharge(amount=1), StructCharge(1), TupleCharge(1), TupleRefund(1), Untyped(1)],
    *[{"amount": 1}, [1], Charge(2), {"amount": "1"}],
    *[MappedCharge(1), MappedRefund(1), MappedCharge(2), filled(MappedCharge(1), to="ann")],
    *[ListedCharge(1), ListedCharge(2), listed(ListedCharge(1), 5), listed(ListedCharge(1), 6)],
    *[b"abc", "YWJj", "abc", [97, 98, 99]],
    *[Decimal("1.5"), "1.5", "15E-1", 1.5, Decimal(1), 1, "1", True, "true", Level.ONE, Rights.READ],
    *[DAY, "2026-01-02", datetime(2026, 1, 2), "2026-01-02T00:00:00.000000", datetime(2026, 1, 2, tzinfo=UTC)],
    *["2026-01-02T00:00:00.000000Z", MOMENT, time(3, 4, 5), "03:04:05.000000", time(3, 4, 5, tzinfo=UTC)],
    *[timedelta(seconds=1), "1000000", 1_000_000],
    *[ID, str(ID), ID.bytes],
    *[Colour.RED, Mood.RED, Mode.RED, "red", "RED", Rights.READ | Rights.WRITE, 3, Rights(0), 0],
    *[{1, 2}, [1, 2], {"1", "2"}, {(1, 2)}, {frozenset({1}), frozenset({2})}, set(), [], {}, None, "", "null", False],
    *[2**60, 2.0**60, f"{2**60:x}", 2**60 + 1, -(2**60), 10**5_000],
    *['!decimal"15E-1"', ["!class", "x"], {"!decimal": "15E-1"}],
]


def test_different_things_have_different_identities_at_every_depth():
    for wrap in (lambda value: value, lambda value: [value], lambda value: {"a": {"b": [value]}}):
        forms = {form_of(wrap(value)).data for value in DIFFERENT}
        assert len(forms) == len(DIFFERENT)
        assert len({fingerprint(wrap(value)) for value in DIFFERENT}) == len(DIFFERENT)


def test_no_json_value_has_the_form_of_another_type():
    for value in DIFFERENT:
        form = form_of({"a": [value]})
        if form.is_json:
            assert json.loads(form.data) is not None
        else:
            with pytest.raises(json.JSONDecodeError):
                json.loads(form.data)


@pytest.mark.parametrize(
    "equal",
    [
        (1, 1.0),
        (0, 0.0, -0.0),
        ([1, "a"], (1, "a")),
        ({"a": 1}, OrderedDict(a=1), MappingProxyType({"a": 1})),
        ("a", Text("a")),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (Decimal("1.50"), Decimal("1.5"), Decimal("15E-1")),
        (b"a", bytearray(b"a"), memoryview(b"a")),
        ({1, 2, 3}, {3, 2, 1}, frozenset({1, 2, 3})),
        (MOMENT.replace(tzinfo=UTC), MOMENT.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=2)))),
        (timedelta(minutes=1), timedelta(seconds=60)),
    ],
    ids=repr,
)
def test_equal_things_have_one_identity(equal):
    assert len({content_key({"value": value}) for value in equal}) == 1


def test_the_order_of_a_set_is_the_same_in_every_process():
    assert form_of({"b", "a", "\u00e9", 1, None}).data == '!set["a","b","\u00e9",1,null]'.encode()


def test_the_documented_forms_stay_as_they_are():
    value = [Charge(1), Decimal("1.50"), b"abc", DAY, MOMENT, time(3), timedelta(1), ID, Colour.RED, {2, 1}, 2**60]
    assert form_of(value).data.decode() == (
        f'[!class["{__name__}:Charge",{{"amount":1}}],!decimal"15E-1",!bytes"YWJj",!date"2026-01-02",'
        '!datetime"2026-01-02T03:04:05.000000",!time"03:00:00.000000",!timedelta"86400000000",'
        f'!uuid"0189b3c0-0000-7000-8000-0123456789ab",!enum["{__name__}:Colour","RED"],!set[1,2],'
        '!int"1000000000000000"]'
    )


def test_excluded_fields_do_not_count_whatever_their_type():
    order = {"id": 1, "at": DAY, "meta": {"trace": b"x", "n": 1}, "items": [{"added": MOMENT, "sku": "a"}]}
    fields = {"at", "meta.trace", "items[].added"}
    same = {"id": 1, "meta": {"n": 1}, "items": [{"sku": "a"}]}
    assert form_of(order, exclude_fields=fields) == (rfc8785.dumps(same), True)
    assert content_key(Charge(1), exclude_fields={"amount"}) == content_key(Charge(2), exclude_fields=["amount"])
    assert form_of({"a": 1, "b": object()}, exclude_fields=iter(["b"])).data == b'{"a":1}'


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [float("nan")]}, r"a\[0\]: is nan"),
        ({"a": Charge(cast("int", object()))}, "a.amount: has type object"),
        ({"a": {1: 2}}, "member name of type int"),
        ({"a": "\ud800"}, "a: has a lone surrogate"),
        ({"a": {object}}, r"a.\{\}: has type type"),
        ([time(3, tzinfo=ZoneInfo("Europe/Berlin"))], "needs a date"),
        (Charge, "has type type"),
    ],
    ids=repr,
)
def test_what_has_no_form_is_refused_with_its_place(value, message):
    with pytest.raises(NotCanonical, match=message):
        form_of(value)


def test_a_class_whose_name_identifies_nothing_is_refused():
    @dataclasses.dataclass
    class Local:
        amount: int

    for payload in (Local(1), {"a": Local(1)}):
        with pytest.raises(NotCanonical, match="made inside of a function.*key="):
            content_key(payload)
        with pytest.raises(NotCanonical, match="made inside of a function"):
            fingerprint(payload)


def test_a_cycle_is_refused():
    value = {"at": DAY}
    value["self"] = value
    with pytest.raises(NotCanonical, match="contains itself"):
        form_of(value)


# As the code before types had tags printed them.
FORMER = [
    (Charge(1), "c2b11e657e12fd177359627ca89412018e2274d0873cfbfcf1fc50f685582e9e"),
    (Refund(1), "c2b11e657e12fd177359627ca89412018e2274d0873cfbfcf1fc50f685582e9e"),
    (Colour.RED, "4bc9274d8758b867e8c071a6082c68a2eb1668fc5ad34f631f96bf94f354c1e1"),
    (b"abc", "cf00f09e68301894cd661c455031be89c3b78e66c7f226d0a5ad120a452bdd0e"),
    (Decimal("1.50"), "9292f870db4fd1442f740f2cda7dec9262336d80289d55574992cfc6c3bc909d"),
    (DAY, "5dfe28dc540201810deee4b2457f71fcdc1c15dc9c9b5542824f16c675e203ba"),
    (UUID(int=1), "5d49ba04563105cdbbf8a194d44b28adf9b076841795000dd0723c3ebdab2b2f"),
    ({"at": DAY, "id": UUID(int=1)}, "cf98cdaccc28a9adab18cd3caeb5c511acfb624919d937fb08c6e1d181b89145"),
]


@pytest.mark.parametrize(("value", "digits"), FORMER, ids=repr)
def test_the_former_key_is_what_it_was(value, digits):
    key, former = content_keys(value)
    assert key == content_key(value) != f"sha256-{digits}"
    assert former is not None
    assert former() == f"sha256-{digits}"


def test_json_has_no_former_key_and_keeps_its_key_and_its_fingerprint():
    value = {"a": 1, "b": [True, None, 1.5, "x"]}
    former = "sha256-693cb02b6bc454ef25b6eed5f67190c66e5bde75abfc6ebc755511ae6d1f0dde"
    assert content_keys(value) == (former, None)
    assert content_keys({**value, "b": tuple(value["b"])}) == (former, None)
    assert fingerprint(value, secret=b"s") == (
        "866e27b0b58feb87c73c7904dc6386da624ab054565816a568ab9cd1ddb6ff68"
        ' {"a":"1f092edcfe37f0c6","b":"939f3b43796e7e8a"}'
    )


def test_what_was_refused_before_has_no_former_key():
    former = content_keys({"tags": {"a"}})[1]
    assert former is not None
    assert former() is None


def test_the_former_fingerprint_is_what_it_was():
    assert former_fingerprint(Charge(1), secret=b"s", exclude_fields=()) == (
        '543941bc8487c788c360a73060d5010d110c2b1e860e3fd10c7ea10995d33b37 {"amount":"ce34d9150237ad5e"}'
    )
    assert former_fingerprint({1}, secret=b"s", exclude_fields=()) is None

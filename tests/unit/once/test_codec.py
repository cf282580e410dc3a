"""Results as bytes: what goes in comes out, and damage is an error."""

from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from math import isnan, nan
from typing import NamedTuple, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr

from sameas.once.codec import (
    BYTES,
    JSON,
    NOT_KEPT,
    PLAIN,
    TEXT,
    TypedCodec,
    codec_for,
    declared_result,
    frame,
    nothing_kept,
    pack,
    unframe,
    unpack,
    why_not_kept,
)
from sameas.once.errors import NotEncodable, RecordDamaged, ResultDoesNotFit, ResultNotKept
from sameas.once.record import Outcome


@dataclass
class Receipt:
    id: str
    total: Decimal
    at: datetime


class Model(BaseModel):
    id: str
    total: Decimal


class Row(msgspec.Struct):
    a: int


class Color(Enum):
    RED = "red"
    HALF = (0.5, "half")


class Size(StrEnum):
    SMALL = "small"


class Rank(IntEnum):
    FIRST = 1


class Point(NamedTuple):
    x: int
    y: float


class Aliased(BaseModel):
    charge_id: str = Field(alias="chargeId")
    paid_on: datetime | None = Field(default=None, alias="paidOn")


class Crossed(BaseModel):
    a: int = Field(alias="b")
    b: int = Field(alias="a")


class Renamed(BaseModel):
    a: int = Field(validation_alias="readAs", serialization_alias="writtenAs")


class Total(NamedTuple):
    amount: Decimal


class Login(BaseModel):
    token: SecretStr


@dataclass
class Reading:
    level: float
    maybe: float | None
    colors: list[Rank]


MOMENT = datetime(2026, 1, 2, tzinfo=UTC)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@given(plain | st.binary())
def test_plain_results_come_back_equal(result):
    data, media_type = PLAIN.encode(result)
    assert PLAIN.decode(data, media_type) == result


@pytest.mark.parametrize(("result", "media_type"), [({"a": 1}, JSON), ("text", TEXT), (b"bytes", BYTES), (None, JSON)])
def test_the_media_type_tells_what_a_result_is(result, media_type):
    assert PLAIN.encode(result)[1] == media_type


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("result", [object(), {"a": {object()}}, Color.RED, Receipt, nested(100_000)])
def test_results_that_cannot_be_kept_are_refused(result):
    with pytest.raises(NotEncodable):
        PLAIN.encode(result)


def test_an_unknown_media_type_is_not_guessed_at():
    with pytest.raises(RecordDamaged, match="media type"):
        PLAIN.decode(b"", "application/x-pickle")


@given(st.binary(max_size=6_000) | st.binary(max_size=50).map(lambda some: some * 200))
def test_frames_come_back_equal(data):
    assert unframe(frame(data)) == data


def test_large_compressible_results_are_compressed():
    assert len(frame(b"a" * 100_000)) < 1_000


@given(st.binary(min_size=1, max_size=300), st.sampled_from([1, 50]), st.data())
def test_any_flipped_bit_is_noticed(some, repeat, choose):
    framed = bytearray(frame(some * repeat))
    position = choose.draw(st.integers(0, len(framed) - 1))
    framed[position] ^= 1 << choose.draw(st.integers(0, 7))
    with pytest.raises(RecordDamaged):
        unframe(bytes(framed))


@pytest.mark.parametrize(
    "framed", [b"", b"\x01", frame(b"x")[:-1], frame(b"a" * 9_999)[:-3], b"\x07" + frame(b"x")[1:]]
)
def test_torn_frames_and_unknown_versions_are_errors(framed):
    with pytest.raises(RecordDamaged):
        unframe(framed)


def test_a_frame_that_claims_too_much_is_refused_before_it_is_unpacked():
    bomb = bytearray(frame(b"\0" * 1_000_000))
    bomb[6:14] = (1 << 40).to_bytes(8, "big")
    with pytest.raises(RecordDamaged, match="limit"):
        unframe(bytes(bomb))
    small = bytearray(frame(b"\0" * 1_000_000))
    small[6:14] = (10).to_bytes(8, "big")
    with pytest.raises(RecordDamaged, match="instead of 10"):
        unframe(bytes(small))


@pytest.mark.parametrize(
    ("declared", "result"),
    [
        (Receipt, Receipt("a", Decimal("1.50"), MOMENT)),
        (Model, Model(id="a", total=Decimal("1.50"))),
        (Row, Row(1)),
        (list[Model], [Model(id="a", total=Decimal(1))]),
        (datetime, MOMENT),
        (tuple[int, str], (1, "a")),
        (Color, Color.RED),
        (Size, Size.SMALL),
        (Rank, Rank.FIRST),
        (Point, Point(1, 2.5)),
        (Receipt | None, Receipt("a", Decimal(1), MOMENT)),
        (Receipt | None, None),
        (dict[str, Row], {"a": Row(1)}),
        (list[Size], [Size.SMALL]),
    ],
)
def test_declared_types_come_back_as_they_were(declared, result):
    codec = codec_for(declared)
    data, media_type = codec.encode(result)
    # What earlier releases took for plain JSON must not look like it.
    assert (media_type == JSON) is (declared in (Receipt, Model, Row))
    assert codec.decode(data, media_type) == result


@pytest.mark.parametrize("wrong", [object(), None, Receipt("a", cast("Decimal", "no number"), MOMENT)])
def test_a_result_of_another_type_than_declared_says_so(wrong):
    with pytest.raises(ResultDoesNotFit, match="does not fit its declared type.*Receipt"):
        TypedCodec(Receipt).encode(wrong)
    with pytest.raises(ResultDoesNotFit, match="does not fit its declared type.*Model"):
        TypedCodec(Model).encode(wrong)


def test_what_does_not_fit_is_told_without_its_values():
    with pytest.raises(ResultDoesNotFit) as refused:
        TypedCodec(Model).encode({"id": ["canary"], "total": "canary"})
    assert "canary" not in str(refused.value)


def test_a_stored_result_that_no_longer_fits_says_so_and_is_not_called_damaged():
    with pytest.raises(ResultDoesNotFit, match="no longer fits"):
        TypedCodec(Receipt).decode(b'{"id": 1}', JSON)


@pytest.mark.parametrize("number", ["NaN", "sNaN", "-Infinity", "1.10", "-0"])
@pytest.mark.parametrize(
    ("declared", "around"),
    [(Decimal, lambda one: one), (Decimal | None, lambda one: one), (list[Decimal], lambda one: [one]), (Total, Total)],
)
def test_a_decimal_that_is_no_number_stays_one(number, declared, around):
    codec = codec_for(declared)
    assert repr(codec.decode(*codec.encode(around(Decimal(number))))) == repr(around(Decimal(number)))


def test_a_nan_in_a_declared_type_stays_one():
    codec = codec_for(Reading)
    data, media_type = codec.encode(Reading(nan, nan, [Rank.FIRST]))
    found = codec.decode(data, media_type)
    assert isnan(found.level)
    assert isnan(found.maybe)
    assert found.colors == [Rank.FIRST]


@pytest.mark.parametrize(
    "result",
    [
        Aliased(chargeId="c-1", paidOn=MOMENT),
        Aliased(chargeId="c-1"),
        Crossed(b=1, a=2),
        Renamed.model_validate({"readAs": 1}),
    ],
)
def test_a_model_with_aliases_comes_back_as_it_was(result):
    codec = codec_for(type(result))
    assert codec.decode(*codec.encode(result)) == result
    outcome, found = pack([result], codec_for(list[type(result)]))
    assert found == unpack(outcome, codec_for(list[type(result)])) == [result]


def test_a_dict_by_alias_is_still_taken_for_its_model():
    assert pack({"chargeId": "c-1"}, codec_for(Aliased))[1] == Aliased(chargeId="c-1")


def test_a_result_that_would_come_back_as_another_is_refused_instead():
    with pytest.raises(ResultDoesNotFit, match="would come back as another") as refused:
        pack(Login(token="canary"), codec_for(Login))
    assert "canary" not in str(refused.value)
    with pytest.raises(ResultDoesNotFit, match="would come back as another"):
        pack([Login(token="canary")], codec_for(list[Login]))


@dataclass
class Charge:
    about: object


@dataclass
class Refund:
    about: object


@dataclass
class Express(Charge):
    pass


class Loose(msgspec.Struct):
    about: object


class Typed(BaseModel):
    about: object


@pytest.mark.parametrize(
    ("declared", "result"),
    [
        (Charge | Refund, Refund(1)),
        (list[Charge | Refund], [Charge(1), Refund(1)]),
        (Charge, Express(1)),
        (Charge, Refund(1)),
        (Charge, Charge(Refund(1))),
        (Charge, Charge({"a": [Color.RED]})),
        (Loose, Loose(Row(1))),
        (Loose, Loose((Point(1, 2.5), {Size.SMALL: Color.RED}))),
        (Typed, Typed(about=Charge(1))),
        (list[int], {1, 2}),
    ],
    ids=repr,
)
def test_a_class_of_its_own_does_not_come_back_as_another(declared, result):
    with pytest.raises(ResultDoesNotFit):
        pack(result, codec_for(declared))


@pytest.mark.parametrize("kind", [Charge, Loose, Typed], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "about", [{1, 2}, {"seen": frozenset({b"a"})}, [({Decimal(1)}, MOMENT)], (1, 2), {1: "a"}, {nan}]
)
def test_what_a_field_of_any_type_holds_comes_back_as_it_was(kind, about):
    outcome, found = pack(kind(about=about), codec_for(kind))
    assert type(found) is kind
    assert repr(found) == repr(unpack(outcome, codec_for(kind))) == repr(kind(about=about))


def test_an_enum_of_any_values_comes_back_by_its_type():
    outcome, found = pack(Color.HALF, codec_for(Color))
    assert found is unpack(outcome, codec_for(Color)) is Color.HALF


@pytest.mark.parametrize(
    ("declared", "data", "media_type", "result"),
    [
        (Size, b"small", TEXT, Size.SMALL),
        (Rank, b"1", JSON, Rank.FIRST),
        (Point, b"[1,2.5]", JSON, Point(1, 2.5)),
        (datetime, b'"2026-01-02T00:00:00Z"', JSON, MOMENT),
        (list[Model], b'[{"id":"a","total":"1"}]', JSON, [Model(id="a", total=Decimal(1))]),
    ],
)
def test_what_earlier_releases_kept_is_still_read(declared, data, media_type, result):
    assert codec_for(declared).decode(data, media_type) == result


@pytest.mark.parametrize("result", [{1, 2}, (1, 2), {1: "a"}, nan, object(), MOMENT])
def test_what_earlier_releases_could_not_keep_is_in_a_frame_that_they_refuse(result):
    try:
        outcome, _ = pack(result, PLAIN)
    except NotEncodable as error:
        outcome = nothing_kept(error)
    assert outcome.data[0] == 2


def test_a_media_type_alone_does_not_make_a_result_one_that_was_not_kept():
    assert why_not_kept(Outcome(frame(b"a body"), NOT_KEPT)) == ""
    assert why_not_kept(nothing_kept(ValueError("canary"))) == "ValueError"
    with pytest.raises(ResultNotKept, match="ValueError"):
        unpack(nothing_kept(ValueError("canary")), PLAIN)


def test_a_type_that_nobody_can_rebuild_is_refused_before_the_work():
    class Odd: ...

    with pytest.raises(NotEncodable, match="Odd"):
        codec_for(Odd)


def test_plain_types_need_no_codec_of_their_own():
    assert codec_for(dict) is codec_for(None) is PLAIN


def test_the_declared_result_of_a_function_counts_where_it_has_to_be_rebuilt():
    def receipt() -> Receipt: ...
    def text() -> str: ...
    def unknown() -> "Nowhere": ...  # type: ignore[name-defined]  # noqa: F821
    def nothing(): ...

    def maybe() -> Receipt | None: ...
    def many() -> dict[str, list[Row]]: ...
    def color() -> Color: ...
    async def later() -> Receipt: ...
    def soon() -> Awaitable[Receipt]: ...
    def moment() -> datetime: ...
    def odd() -> list[object]: ...

    assert declared_result(receipt) is declared_result(later) is declared_result(soon) is Receipt
    assert declared_result(maybe) == Receipt | None
    assert declared_result(many) == dict[str, list[Row]]
    assert declared_result(color) is Color
    assert declared_result(moment) is declared_result(odd) is None
    assert declared_result(text) is declared_result(unknown) is declared_result(nothing) is None
    assert declared_result(len) is None

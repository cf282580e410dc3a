"""Results as bytes: what goes in comes out, and damage is an error."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from sameas.once.codec import BYTES, JSON, PLAIN, TEXT, TypedCodec, codec_for, declared_result, frame, unframe
from sameas.once.errors import NotEncodable, RecordDamaged

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


@pytest.mark.parametrize("result", [object(), {"a": {1}}, float("nan"), "\ud800", ["\ud800"], nested(100_000)])
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


MOMENT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("declared", "result"),
    [
        (Receipt, Receipt("a", Decimal("1.50"), MOMENT)),
        (Model, Model(id="a", total=Decimal("1.50"))),
        (Row, Row(1)),
        (list[Model], [Model(id="a", total=Decimal(1))]),
        (datetime, MOMENT),
        (tuple[int, str], (1, "a")),
    ],
)
def test_declared_types_come_back_as_they_were(declared, result):
    codec = codec_for(declared)
    data, media_type = codec.encode(result)
    assert media_type == JSON
    assert codec.decode(data, media_type) == result


def test_a_result_of_another_type_than_declared_is_refused():
    with pytest.raises(NotEncodable, match="declared"):
        TypedCodec(Receipt).encode(object())


def test_a_stored_result_that_no_longer_fits_is_an_error():
    with pytest.raises(RecordDamaged, match="no longer fits"):
        TypedCodec(Receipt).decode(b'{"id": 1}', JSON)


def test_plain_types_need_no_codec_of_their_own():
    assert codec_for(dict) is codec_for(None) is PLAIN


def test_the_declared_result_of_a_function_counts_where_it_has_to_be_rebuilt():
    def receipt() -> Receipt: ...
    def text() -> str: ...
    def unknown() -> "Nowhere": ...  # noqa: F821
    def nothing(): ...

    assert declared_result(receipt) is Receipt
    assert declared_result(text) is declared_result(unknown) is declared_result(nothing) is None
    assert declared_result(len) is None

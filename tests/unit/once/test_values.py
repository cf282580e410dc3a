"""Python's own values as bytes: what goes in comes out equal, of the same type, whatever is inside of what."""

from collections import Counter, OrderedDict, defaultdict
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from math import nan
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameas.once.codec import PLAIN, pack, unpack
from sameas.once.errors import NotEncodable, RecordDamaged
from sameas.once.values import MEDIA_TYPE

zones = (
    st.none() | st.just(UTC) | st.timezones() | st.integers(-1_439, 1_439).map(lambda m: timezone(timedelta(minutes=m)))
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers(allow_nan=False)
    | st.text(st.characters())
    | st.binary()
    | st.dates()
    | st.datetimes(timezones=zones, allow_imaginary=True)
    | st.times(timezones=zones)
    | st.timedeltas()
    | st.decimals().filter(lambda number: not number.is_snan())
    | st.uuids()
)
hashable = st.recursive(scalars, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=4)
anything = st.recursive(
    hashable,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.sets(hashable, max_size=3)
        | st.dictionaries(hashable, inner)
        | st.dictionaries(st.sampled_from(["$", "a", ""]), inner)
    ),
    max_leaves=12,
)


def exactly(value):
    """What tells two values apart: their types, NaN, the sign of zero, the zone and the fold."""
    match value:
        case dict():
            return dict, [(exactly(name), exactly(item)) for name, item in value.items()]
        case list() | tuple():
            return type(value), [exactly(each) for each in value]
        case set() | frozenset():
            return type(value), sorted(repr(exactly(each)) for each in value)
        case float() | Decimal() | complex():
            return type(value), repr(value)
        case datetime() | time():
            return type(value), value.isoformat(), value.fold, value.tzinfo and value.utcoffset()
        case _:
            return type(value), value


@given(anything)
def test_whatever_is_made_of_pythons_own_values_comes_back_exactly(result):
    outcome, given_first = pack(result, PLAIN)
    assert exactly(given_first) == exactly(unpack(outcome, PLAIN)) == exactly(result)


def test_a_time_in_a_zone_keeps_its_zone():
    moment = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1)
    outcome, _ = pack([moment], PLAIN)
    (found,) = unpack(outcome, PLAIN)
    assert (found, found.tzinfo, found.fold) == (moment, moment.tzinfo, 1)


def test_an_integer_that_python_would_not_read_again_comes_back():
    long = [10**5_000, -(10**5_000)]
    # Without its digits in the message, which Python would refuse to write.
    same = unpack(pack(long, PLAIN)[0], PLAIN) == long
    assert same


class Money(Decimal):
    pass


class Exact(datetime):
    """A datetime that is finer than its type can say, as that of pandas is."""

    def __eq__(self, other):
        return isinstance(other, Exact)

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (OrderedDict(a=1), dict),
        (defaultdict(list, {1: [2]}), dict),
        (Counter("aab"), dict),
        (Money("1.50"), Decimal),
        (bytearray(b"a"), bytes),
        ([memoryview(b"a")], list),
    ],
)
def test_a_subclass_comes_back_as_the_type_that_it_extends(result, kind):
    found = unpack(pack(result, PLAIN)[0], PLAIN)
    assert type(found) is kind
    assert found == result


@pytest.mark.parametrize("result", [Exact(2026, 1, 2), [object()], {"a": type}, {object(): 1}, (x for x in "ab")])
def test_what_would_not_come_back_equal_is_refused(result):
    with pytest.raises(NotEncodable, match="result_type"):
        PLAIN.encode(result)


def test_a_value_that_contains_itself_is_refused():
    around = {1: nan}
    around[2] = around
    with pytest.raises(NotEncodable):
        PLAIN.encode(around)


@pytest.mark.parametrize(
    "data", [b'{"$":["object","os.system"]}', b'{"$":1}', b'{"$":["date","no date"]}', b'{"$":["uuid","1"]}', b"{"]
)
def test_a_tag_that_is_not_known_is_an_error(data):
    with pytest.raises(RecordDamaged, match="cannot be read"):
        PLAIN.decode(data, MEDIA_TYPE)


@pytest.mark.parametrize(
    "result", [date(2026, 1, 2), time(1, 2), timedelta(1), Decimal("1.10"), UUID(int=1), b"a", {1}, {"a": nan}]
)
def test_equal_values_have_equal_bytes(result):
    assert PLAIN.encode(result) == PLAIN.encode(result)

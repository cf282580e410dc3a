"""What of a response is kept, and what never is."""

import pytest

from sameas.once.errors import RecordDamaged
from sameas.once.record import Outcome
from sameas.web.response import CODEC, KeptResponse, http_date, kept_names, may_be_kept, with_length


@pytest.mark.parametrize(
    "name",
    [
        "set-cookie",
        "cookie",
        "authorization",
        "proxy-authenticate",
        "www-authenticate",
        "authentication-info",
        "x-auth-token",
        "x-api-key",
        "x-apikey",
        "x-csrf-token",
        "x-session-id",
        "transfer-encoding",
        "connection",
        "x-amz-security-token",
    ],
)
def test_cookies_credentials_and_hop_by_hop_headers_cannot_be_kept(name):
    assert not may_be_kept(name)
    with pytest.raises(ValueError, match="never kept"):
        kept_names([name.title()])


def test_a_route_may_keep_more_headers():
    assert b"x-author" in kept_names(["X-Author"])
    assert b"location" in kept_names([])
    assert b"x-author" not in kept_names([])


@pytest.mark.parametrize("body", [b"", b"{}", bytes(range(256)) * 20])
def test_what_is_packed_comes_back_equal(body):
    kept = KeptResponse(201, [(b"content-type", b"text/plain; charset=x"), (b"link", b"\xff")], body, len(body))
    outcome, same = CODEC.pack(kept)
    assert same is kept
    assert outcome.meta["status"] == 201
    assert outcome.media_type == "text/plain; charset=x"
    assert CODEC.unpack(outcome) == kept


def test_the_part_that_is_kept_of_a_long_body_is_known():
    kept = KeptResponse(200, [], b"ab", 5, "start")
    assert CODEC.unpack(CODEC.pack(kept)[0]) == kept


@pytest.mark.parametrize(
    "meta", [{}, {"status": 200}, {"status": 200, "headers": ["odd"]}, {"status": 200, "headers": [1, 2]}]
)
def test_a_record_that_is_no_response_is_damaged(meta):
    good = CODEC.pack(KeptResponse(200, [], b"", 0))[0]
    with pytest.raises(RecordDamaged):
        CODEC.unpack(Outcome(good.data, "", meta))


def test_the_length_is_that_of_what_is_sent():
    assert with_length(KeptResponse(200, [], b"abc", 3), b"abc") == [(b"content-length", b"3")]
    assert with_length(KeptResponse(200, [(b"content-length", b"3")], b"abc", 3), b"abcd") == [
        (b"content-length", b"4")
    ]
    assert with_length(KeptResponse(204, [], b"", 0), b"") == []
    assert with_length(KeptResponse(304, [(b"content-length", b"9")], b"", 0), b"") == [(b"content-length", b"9")]


def test_dates_are_http_dates():
    assert http_date(784_111_777) == b"Sun, 06 Nov 1994 08:49:37 GMT"

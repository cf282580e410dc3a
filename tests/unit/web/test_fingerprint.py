"""Two requests are the same by what they ask for, not by how their bytes happen to lie."""

import gzip
import json
import zlib

import pytest

from sameas.identity.key import differing_fields
from sameas.web import fingerprint as module
from sameas.web.capture import IN_MEMORY, Spool, TooLarge
from sameas.web.fingerprint import Fingerprints, NotComparable
from sameas.web.route import RoutePolicy

pytestmark = pytest.mark.anyio

JSON = b"application/json"


async def of(body, kind=JSON, *, encoding=b"", path="/orders", method="POST", query=b"", prints=None, **settings):
    line = (method, path, query, kind)
    held = spool(body)
    try:
        return await (prints or Fingerprints(b"secret")).of(line, encoding, held, RoutePolicy(**settings))
    finally:
        held.close()


def spool(body):
    made = Spool()
    for at in range(0, len(body), 50_000):
        made.write(body[at : at + 50_000])
    return made


async def test_json_counts_by_its_content():
    assert await of(b'{"a": 1, "b": [1.0, "x"]}') == await of(b'{"b":[1,"\\u0078"],\n"a":1}')
    assert await of(b'{"a": 1}') != await of(b'{"a": 2}')
    assert await of(b"[1, 2]") == await of(b"[1,2]")
    assert await of(b"[1, 2]") != await of(b"[2, 1]")
    assert await of(b'{"a":1}', b"application/vnd.x+json; charset=utf-8") == await of(
        b'{ "a":1}', b"application/vnd.x+json"
    )


async def test_bytes_in_an_encoding_that_is_not_known_here_are_others_than_plain_ones():
    prints = {await of(b"packed", b"text/plain", encoding=encoding) for encoding in (b"", b"br", b"zstd")}
    assert len(prints) == 3


async def test_other_types_count_by_their_bytes():
    assert await of(b'{"a": 1}', b"text/plain") != await of(b'{"a":1}', b"text/plain")
    assert await of(b"\xff\xfe{", JSON) != await of(b"\xff\xff{", JSON)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"path": "/orders/2"}, ":path"),
        ({"method": "PUT"}, ":method"),
        ({"query": b"x=1"}, ":query"),
        ({"kind": b"application/vnd.x+json"}, ":type"),
    ],
)
async def test_the_request_line_counts_and_is_named(change, field):
    assert differing_fields(await of(b'{"a":1}'), await of(b'{"a":1}', **change)) == [field]


async def test_the_members_that_differ_are_named_and_not_confused_with_the_request_line():
    ours, theirs = await of(b'{"amount": 1, "to": "x", ":path": 1}'), await of(b'{"amount": 2, "to": "x", ":path": 2}')
    assert differing_fields(ours, theirs) == ["::path", "amount"]


async def test_a_fingerprint_is_keyed_and_holds_no_value():
    ours = await of(b'{"pin": 1234}')
    assert ours != await of(b'{"pin": 1234}', prints=Fingerprints(b"another"))
    assert "1234" not in ours.partition(" ")[2]


async def test_excluded_members_do_not_count():
    assert await of(b'{"a": 1, "sent_at": 1}', exclude_fields=["sent_at"]) == await of(
        b'{"a": 1, "sent_at": 2}', exclude_fields=["sent_at"]
    )
    prints = Fingerprints(b"")
    assert await of(b'{"a": 1, "b": 1}', prints=prints) != await of(
        b'{"a": 1, "b": 1}', prints=prints, exclude_fields=["b"]
    )


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": 1, "a": 2}',
        b'{"a": "\\ud800"}',
        b'{"\\ud800": 1}',
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"a": 1',
        b'{"a": 1} x',
        b'{"a": 1' + b"0" * 5_000 + b"}",
    ],
    ids=lambda body: body[:12].decode(),
)
async def test_json_that_cannot_be_compared_is_refused(body):
    with pytest.raises(NotComparable):
        await of(body)


async def test_a_refusal_names_the_member():
    with pytest.raises(NotComparable, match=r"order\.amount: "):
        await of(b'{"order": {"amount": NaN}}')


@pytest.mark.parametrize(
    ("one", "other", "fields"),
    [
        (b'{"id": 9007199254740993}', b'{"id": 9007199254740992}', ["id"]),
        (b'{"id": 18446744073709551615}', b'{"id": 18446744073709551614}', ["id"]),
        (b'{"id": -9223372036854775808}', b'{"id": -9223372036854775807}', ["id"]),
        (b'{"id": 9007199254740993}', b'{"id": "9007199254740993"}', ["id"]),
        (b'{"id": 9007199254740993}', b'{"id": ["9007199254740993", 1]}', ["id"]),
        (b'{"a": [9007199254740993, "9007199254740993"]}', b'{"a": ["9007199254740993", 9007199254740993]}', ["a"]),
        (b'{"id": 9007199254740993, "a": 1}', b'{"id": 9007199254740993, "a": 2}', ["a"]),
        (b'{"id": 9007199254740993, "a": "Infinity"}', b'{"id": 9007199254740993, "a": "NaN"}', ["a"]),
        (b"[9007199254740993]", b"[9007199254740995]", [":body"]),
        (b"9007199254740993", b'"9007199254740993"', [":body"]),
        (b"[9007199254740993, 0]", b'["9007199254740993", 0]', [":body"]),
    ],
)
async def test_integers_of_64_bits_are_compared_by_their_digits(one, other, fields):
    ours, theirs = await of(one), await of(other)
    assert differing_fields(ours, theirs) == fields
    assert ours == await of(b" " + one + b"\n")


async def test_the_order_of_members_does_not_count_beside_wide_integers():
    assert await of(b'{"id": 9007199254740993, "a": 1.0}') == await of(b'{"a": 1, "id": 9007199254740993}')


@pytest.mark.parametrize(("open_", "close"), [(b'{"a": ', b"}"), (b"[", b"]"), (b'[{"a": ', b"}]")])
async def test_a_wide_integer_that_is_excluded_does_not_count(open_, close):
    bodies = [open_ + b'{"b": 1, "at": %b}' % at + close for at in (b"9007199254740993", b"9007199254740995", b"1")]
    paths = ["a.at", "[].at", "[].a.at"]
    assert len({await of(body, exclude_fields=paths) for body in bodies}) == 1


@pytest.mark.parametrize(
    "deep", [b"[" * 300 + b"9007199254740993" + b"]" * 300, b'{"a":' * 250 + b"9007199254740993" + b"}" * 250]
)
async def test_a_wide_integer_too_deep_is_refused(deep):
    with pytest.raises(NotComparable, match="nested"):
        await of(deep)


@pytest.mark.parametrize("size", [1, module.SHORT_BODY], ids=["short", "longer"])
async def test_an_equal_body_is_parsed_once(monkeypatch, size):
    parsed = []
    monkeypatch.setattr(module, "parse_json", lambda data: parsed.append(data) or json.loads(data))
    prints = Fingerprints(b"")
    body = b'{"a": 1.0, "b": "%b"}' % (b"x" * size)
    first = await of(body, prints=prints)
    assert await of(body, prints=prints) == first
    assert len(parsed) == 1
    await of(body.replace(b" ", b"  "), prints=prints)
    assert len(parsed) == 2


async def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "REMEMBERED", 10)
    prints = Fingerprints(b"")
    for number in range(30):
        await of(b"%d" % number, prints=prints)
        assert 0 < len(prints._seen) <= 10


def form(boundary, *parts):
    body = b""
    for head, content in parts:
        body += b"--" + boundary + b"\r\n" + head + b"\r\n\r\n" + content + b"\r\n"
    return body + b"--" + boundary + b"--\r\n", b"multipart/form-data; boundary=" + boundary


FILE = b'Content-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain'
TITLE = b'content-disposition: form-data; name="title"'


async def test_a_multipart_body_counts_by_its_parts_whatever_the_boundary():
    one = await of(*form(b"xx1", (FILE, b"content\r\n--yy"), (TITLE, b"t")))
    assert one == await of(*form(b"another", (FILE, b"content\r\n--yy"), (TITLE, b"t")))
    other = await of(*form(b"another", (FILE, b"content\r\n--yz"), (TITLE, b"t")))
    assert differing_fields(one, other) == ["file"]
    renamed = await of(*form(b"another", (FILE.replace(b"a.txt", b"b.txt"), b"content\r\n--yy"), (TITLE, b"t")))
    assert differing_fields(one, renamed) == ["file"]
    assert differing_fields(one, await of(*form(b"b", (FILE, b"content\r\n--yy")))) == ["title"]


async def test_large_parts_are_compared_on_disk():
    content = b"0123456789abcdef" * (IN_MEMORY // 8)
    one = await of(*form(b"b1", (FILE, content)))
    assert one == await of(*form(b"b2", (FILE, content)))
    assert one != await of(*form(b"b2", (FILE, content[:-1] + b"x")))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"--b\r\n\r\nx", b"multipart/form-data; boundary=b"),
        (b"nothing", b"multipart/form-data; boundary=b"),
        (b"--b--", b"multipart/form-data"),
        (b"--bx\r\n\r\ny\r\n--b--", b"multipart/form-data; boundary=b"),
        (b"--b\r\n\r\ny\r\n" * 1_100 + b"--b--", b"multipart/form-data; boundary=b"),
        # Others may find parts where these are.
        (b"x--b\r\n\r\nz\r\n--b\r\n\r\ny\r\n--b--", b"multipart/form-data; boundary=b"),
        (b"--b\r\n\r\ny\r\n--b--\r\n--b\r\n\r\nz\r\n--b--", b"multipart/form-data; boundary=b"),
        (b"--b\r\n\r\ny\r\n--b--", b"multipart/form-data; boundary=b; boundary=c"),
        (b"--b\r\n\r\ny\r\n--b--", b'multipart/form-data; x="; boundary=b"; boundary*=c'),
    ],
)
async def test_a_multipart_body_that_is_none_is_refused(body, kind):
    with pytest.raises(NotComparable):
        await of(body, kind)


async def test_parts_without_a_name_or_a_head_or_content_count_too():
    one = await of(b"--b\r\n\r\n\r\n--b--", b"multipart/mixed; boundary=b")
    two = await of(b"--b\r\n\r\nx\r\n--b--", b"multipart/mixed; boundary=b")
    assert one != two


async def test_a_compressed_body_counts_by_what_is_inside():
    plain = await of(b'{"a": 1}')
    assert plain == await of(gzip.compress(b'{"a":1}', mtime=1), encoding=b"gzip")
    assert plain == await of(gzip.compress(b'{"a":', mtime=2) + gzip.compress(b"1}"), encoding=b"gzip")
    assert plain == await of(zlib.compress(b'{"a":1}'), encoding=b"deflate")
    assert await of(b"abc", encoding=b"br") != await of(b"abd", encoding=b"br")


async def test_a_compressed_bomb_is_refused_before_it_unfolds():
    bomb = gzip.compress(b"0" * 20_000_000)
    with pytest.raises(TooLarge):
        await of(bomb, encoding=b"gzip", body_limit=1_000_000)


@pytest.mark.parametrize(
    "body",
    [b"not gzip", gzip.compress(b"x" * 100, mtime=0)[:-6], gzip.compress(b"x", mtime=0) + b"rest"],
    ids=["plain", "cut", "longer"],
)
async def test_a_body_that_is_not_what_its_encoding_says_is_refused(body):
    with pytest.raises(NotComparable):
        await of(body, encoding=b"gzip")


async def test_an_empty_body_has_no_field():
    assert differing_fields(await of(b""), await of(b'{"a": 1}')) == ["a"]
    assert await of(b"") == await of(gzip.compress(b""), encoding=b"gzip")


async def test_every_secret_gives_prints_of_its_own():
    secrets = (b"", b"secret", b"x" * 64, b"x" * 65, b"x" * 100)
    prints = [await of(b'{"a": 1}', prints=Fingerprints(secret)) for secret in secrets]
    for part in (0, 1):
        assert len({one.split(" ", 1)[part] for one in prints}) == len(secrets)

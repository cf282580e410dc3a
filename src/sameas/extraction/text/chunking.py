"""Chunks of a text: whole sentences and paragraphs, with offsets, cut where the text itself says.

Rule: a boundary depends only on the characters near it. Every end of a sentence or paragraph has a rank
(paragraphs first, then a checksum of the characters around it), and it is a boundary if no better one, and no
end of the text, lies within `window` characters. So an edit far away leaves a chunk and its digest as they were, and
a short text is one chunk. A stretch without such a boundary for `limit` characters is split at its best rank, counted
from its own beginning; the next boundary restores the rhythm. Works on a stream with bounded memory, and in any
script; words are not needed.
"""

# ruff: noqa: RUF001, SIM905 (word lists and the marks of other scripts are the data here)

import hashlib
import re
import unicodedata
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain

import msgspec

from sameas.extraction.text.document import Span

# What the rank of a boundary may look at, on either side.
_CONTEXT = 32
# What deciding that something is an end may look at: a word before it, blanks and a letter after it.
_SIGHT = 64
_BLOCK = 1 << 16

_CLOSERS = "\"'”’»)\\]」』）】》〉"
_STOPS = ".!?…؟۔।॥։።။។‼⁇⁈⁉"
_WIDE_STOPS = "。！？｡"
# Each match begins with one of a few characters, so that the rest of a text is skipped quickly.
_ENDS = re.compile(
    rf"[\n{_WIDE_STOPS}{_STOPS}](?:"
    rf"(?<=\n)(?P<paragraph>[^\S\n]{{0,30}}\n+)"
    rf"|(?<=\n)(?P<item>(?=[ \t]{{0,30}}(?:[-*+•‣#>|]|\d{{1,3}}[.)])[ \t]))"
    rf"|(?<=[{_WIDE_STOPS}])(?P<wide>[{_WIDE_STOPS}]*[{_CLOSERS}]{{0,4}})"
    # The look-behind starts a run of stops once: a megabyte of dots takes linear time.
    rf"|(?<=[{_STOPS}])(?<![{_STOPS}]{{2}})(?P<stop>[{_STOPS}]*+[{_CLOSERS}]{{0,4}}(?=\s))"
    rf")"
)
# Whatever ends a sentence begins with one of these.
_MAY_END = re.compile(rf"[\n{_WIDE_STOPS}{_STOPS}]")
_BEFORE_STOP = re.compile(r"(?:^|[\s(\[\"'“‘«])([^\s(\[\"'“‘«]{1,12})\Z")
_INITIAL = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
# Titles and the like: a name or number follows, never a new sentence. Lower case, without their dot.
_NEVER_LAST = frozenset(
    (
        "mr mrs ms mx dr prof st sr jr gen col lt sgt capt cpt cmdr adm maj rev hon gov sen rep pres fr mme "
        "mlle herr hr fig figs no nos nr vol pp pg p art sec ch cf vs ca approx al eds ed dipl ing sra dra "
        "bzw vgl mt ft bros feat"
    ).split()
)
_MONTHS = frozenset("jan feb mar apr jun jul aug sep sept oct nov dec".split())
# "c. 1245", "d. 1302", "fl. 1260".
_BEFORE_YEARS = frozenset("b c d fl r".split())


class ChunkSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How large chunks are: about twice `window` on average, never more than `limit` characters."""

    window: int = 600
    limit: int = 3000

    def __post_init__(self) -> None:
        if self.window < 1 or self.limit < 2 * self.window:
            raise ValueError("chunk settings need window >= 1 and limit >= 2 * window")


class Chunk(msgspec.Struct, frozen=True, dict=True):
    """A stretch of the normalised text; `text` is exactly the characters from start to end."""

    index: int
    start: int
    end: int
    text: str

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    @cached_property
    def sentences(self) -> tuple[Span, ...]:
        """The sentences of the chunk, in the chunk's own offsets, without the blanks around them."""
        return tuple(sentence_spans(self.text))


def sentence_spans(text: str) -> Iterator[Span]:
    """The sentences of a text, without the blanks around them."""
    start = 0
    for end in chain((end for end, _ in _ends(text)), (len(text),)):
        span = _trimmed(text, start, end)
        if span is not None:
            yield span
        start = end


def most_sentences(text: str, start: int, end: int) -> int:
    """At least the number of sentences that a stretch of the text has to do with, found at a glance. It must begin with
    a letter or digit: a quotation mark may belong to the end of a sentence before it.
    """
    return 1 + len(_MAY_END.findall(text, start, end))


def chunk_text(text: str, *, settings: ChunkSettings | None = None) -> list[Chunk]:
    """All chunks of a normalised text."""
    return list(iter_chunks((text,), settings=settings))


def iter_chunks(pieces: Iterable[str], *, settings: ChunkSettings | None = None) -> Iterator[Chunk]:
    """The chunks of a normalised text that arrives in pieces, in bounded memory."""
    cutter = _Cutter(settings or ChunkSettings())
    index = 0
    for piece in chain(pieces, (None,)):
        for start, text in cutter.feed(piece):
            yield Chunk(index=index, start=start, end=start + len(text), text=text)
            index += 1


class _Cutter:
    """The buffer of a stream: what lies before `_start` is kept only as far as ranks may look back."""

    def __init__(self, settings: ChunkSettings) -> None:
        self._settings = settings
        self._buffer = ""
        self._waiting: list[str] = []
        self._waiting_size = 0
        self._base = 0
        self._start = 0

    def feed(self, piece: str | None) -> Iterator[tuple[int, str]]:
        """Take a piece, or None for the end, and give the chunks that are now certain, with their offsets."""
        final = piece is None
        if piece is not None:
            # A long piece is taken in blocks, so that the ranks in hand stay few.
            for at in range(0, len(piece), _BLOCK):
                self._waiting.append(piece[at : at + _BLOCK])
                self._waiting_size += len(self._waiting[-1])
                if self._waiting_size >= _BLOCK:
                    yield from self._advance(final=False)
            return
        yield from self._advance(final=final)

    def _advance(self, *, final: bool) -> Iterator[tuple[int, str]]:
        self._buffer = "".join([self._buffer, *self._waiting])
        self._waiting.clear()
        self._waiting_size = 0
        start = self._start
        for end in self._cuts(final=final):
            span = _trimmed(self._buffer, start - self._base, end - self._base)
            if span is not None:
                yield self._base + span.start, self._buffer[span.start : span.end]
            start = end
        self._start = start
        keep = max(self._base, start - self._settings.window - 2 * (_SIGHT + _CONTEXT))
        self._buffer = self._buffer[keep - self._base :]
        self._base = keep

    def _cuts(self, *, final: bool) -> Iterator[int]:
        window, limit = self._settings.window, self._settings.limit
        text, base = self._buffer, self._base
        end = base + len(text)
        known = 0 if base == 0 else base + _SIGHT + _CONTEXT
        sure = end if final else end - _SIGHT - _CONTEXT
        ranked = [(base + at, _rank(text, at, level)) for at, level in _ends(text) if known <= base + at <= sure]
        places = [place for place, _ in ranked]
        best = [
            place
            for index, (place, _) in enumerate(ranked)
            if max(self._start, window - 1) < place <= sure - window and _is_best(ranked, index, window=window)
        ]
        # Up to here every boundary is decided, so a stretch that ends before it may be split.
        horizon = end if final else sure - window
        start = self._start
        for cut in chain(best, (end if final else None,)):
            stop = horizon if cut is None else cut
            while stop - start > limit:
                start = self._forced(start, ranked, places)
                yield start
            if cut is not None and cut > start:
                yield cut
                start = cut

    def _forced(self, start: int, ranked: list[tuple[int, tuple[int, int]]], places: list[int]) -> int:
        limit = self._settings.limit
        low = bisect_right(places, start + limit // 2)
        high = bisect_right(places, start + limit)
        if low < high:
            return min(ranked[low:high], key=lambda item: (item[1], item[0]))[0]
        return self._base + _safe_cut(self._buffer, start - self._base, start - self._base + limit)


def _is_best(ranked: list[tuple[int, tuple[int, int]]], index: int, *, window: int) -> bool:
    place, rank = ranked[index]
    for left in range(index - 1, -1, -1):
        if ranked[left][0] < place - window:
            break
        if ranked[left][1] <= rank:
            return False
    for right in range(index + 1, len(ranked)):
        if ranked[right][0] > place + window:
            break
        if ranked[right][1] < rank:
            return False
    return True


def _rank(text: str, at: int, level: int) -> tuple[int, int]:
    after = at
    edge = min(len(text), at + _SIGHT)
    while after < edge and text[after].isspace():
        after += 1
    around = text[max(0, at - _CONTEXT) : at] + text[after : after + _CONTEXT - (after - at) // 2]
    return level, zlib.crc32(around.encode("utf-8", "surrogatepass"))


def _ends(text: str) -> Iterator[tuple[int, int]]:
    """Where sentences and paragraphs end: the offset just after the last character, and the level, 0 for
    paragraphs.
    """
    last: tuple[int, int] | None = None
    for match in _ENDS.finditer(text):
        kind = match.lastgroup
        if kind in ("paragraph", "item"):
            found = (match.start(), 0 if kind == "paragraph" else 1)
        elif kind == "stop" and not _ends_sentence(text, match):
            continue
        else:
            found = (match.end(), 1)
        if last is not None and last[0] != found[0]:
            yield last
        last = found if last is None or last[0] != found[0] else (found[0], min(last[1], found[1]))
    if last is not None:
        yield last


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    follows = text[match.end() : match.end() + _SIGHT].lstrip()[:1]
    if follows.islower():
        return False
    if match.group() != ".":
        return True
    before = _BEFORE_STOP.search(text, max(0, match.start() - 14), match.start())
    if before is None:
        return True
    word = before[1]
    lower = word.lower()
    if lower in _NEVER_LAST or ((lower in _MONTHS or word in _BEFORE_YEARS) and follows.isdigit()):
        return False
    # "J. Smith", "e.g. Paris": one letter, or letters with dots between, and something that is a name or number.
    return not (_INITIAL.fullmatch(word) and (len(word) > 1 or word.isupper()))


def _trimmed(text: str, start: int, end: int) -> Span | None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return Span(start, end) if start < end else None


def _safe_cut(text: str, start: int, wanted: int) -> int:
    """A cut in text without sentence ends: after a blank if there is one near, never inside a character of
    several.
    """
    for at in range(wanted, max(start, wanted - 200), -1):
        if text[at - 1].isspace():
            return at
    at = wanted
    floor = max(start + 1, wanted - _SIGHT)
    while at > floor and at < len(text) and _joins(text[at - 1], text[at]):
        at -= 1
    return at


def _joins(left: str, right: str) -> bool:
    if left == "\u200d" or right == "\u200d" or unicodedata.category(right).startswith("M"):
        return True
    # Skin tones and the second half of a flag.
    return "\U0001f3fb" <= right <= "\U0001f3ff" or "\U0001f1e6" <= right <= "\U0001f1ff"


def find_sentence(sentences: tuple[Span, ...], offset: int) -> int:
    """The number of the sentence that holds an offset, or of the last one before it."""
    return max(0, bisect_left(sentences, offset + 1, key=lambda span: span.start) - 1)

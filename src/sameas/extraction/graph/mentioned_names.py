"""The names that a text says, each form of them once, and the places where it says them.

Rule: forms are held in memory, places in a scratch database. Memory grows with the number of different names and
classes, not with the number of mentions.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from sameas.extraction.graph.model import ConfidenceSource, Mention
from sameas.extraction.graph.scratch import Scratch

Types: TypeAlias = tuple[str, ...]
Place: TypeAlias = tuple[int, int]
_What: TypeAlias = tuple[str, Types, str, float, ConfidenceSource, str]

_TABLE = "CREATE TABLE place (form INTEGER, start INTEGER, stop INTEGER)"
_INDEXES = ("CREATE INDEX by_form ON place (form, start, stop)", "CREATE INDEX by_place ON place (start, stop, form)")
_ADD = "INSERT INTO place VALUES (?, ?, ?)"


class NameForm:
    """A name as it is written, with the classes, the individual and the confidence that go with it."""

    __slots__ = ("count", "first", "number", "what")

    def __init__(self, number: int, what: _What) -> None:
        self.number = number
        self.what = what
        self.count = 0
        self.first: Place = (0, 0)
        """Where it is said first."""

    @property
    def text(self) -> str:
        return self.what[0]

    @property
    def name(self) -> str:
        """What the thing is called: as it is written here, or by the form that examples taught for it."""
        return self.what[5] or self.what[0]

    @property
    def types(self) -> Types:
        return self.what[1]

    @property
    def individual(self) -> str:
        return self.what[2]

    @property
    def confidence(self) -> tuple[float, ConfidenceSource]:
        return self.what[3:5]

    def saw(self, place: Place) -> None:
        self.first = min(self.first, place) if self.count else place
        self.count += 1


class MentionedNames:
    """The forms of a text and their places."""

    def __init__(self, mentions: Iterable[Mention]) -> None:
        self._scratch = Scratch(_TABLE)
        self._forms: list[NameForm] = []
        self._scratch.fill(_ADD, self._noted(mentions))
        for index in _INDEXES:
            self._scratch.do(index)

    @property
    def forms(self) -> tuple[NameForm, ...]:
        return tuple(self._forms)

    def new_form(self, what: _What) -> NameForm:
        form = NameForm(len(self._forms), what)
        self._forms.append(form)
        return form

    def places(self, form: NameForm) -> list[Place]:
        """Where a form is said, from the text's beginning to its end."""
        return self._scratch.rows("SELECT start, stop FROM place WHERE form = ? ORDER BY start, stop", form.number)

    def at(self, place: Place) -> list[NameForm]:
        """The forms that are said at a place."""
        found = self._scratch.rows("SELECT form FROM place WHERE start = ? AND stop = ?", *place)
        return [self._forms[number] for (number,) in found]

    def between(self, start: int, end: int) -> dict[Place, list[NameForm]]:
        """The forms that begin in a stretch of the text, by their places."""
        found: dict[Place, list[NameForm]] = {}
        for begin, stop, number in self._scratch.rows(
            "SELECT start, stop, form FROM place WHERE start >= ? AND start < ?", start, end
        ):
            found.setdefault((begin, stop), []).append(self._forms[number])
        return found

    def add(self, form: NameForm, place: Place) -> None:
        self._scratch.do(_ADD, form.number, *place)
        form.saw(place)

    def split(self, form: NameForm, places: Sequence[Place]) -> NameForm:
        """These places of a form as one of their own; the form itself where they are all of its places."""
        if len(places) == form.count:
            return form
        part = self.new_form(form.what)
        for place in places:
            part.saw(place)
        self._scratch.fill(
            "UPDATE place SET form = ? WHERE form = ? AND start = ? AND stop = ?",
            ((part.number, form.number, *place) for place in places),
        )
        return part

    def _noted(self, mentions: Iterable[Mention]) -> Iterator[tuple[int, int, int]]:
        known: dict[_What, NameForm] = {}
        for said in mentions:
            what = (said.text, said.types, said.individual, said.confidence, said.confidence_from, said.form)
            form = known.get(what)
            if form is None:
                form = known[what] = self.new_form(what)
            form.saw((said.start, said.end))
            yield form.number, said.start, said.end

"""From a cue and the mentions around it to who is related to whom, and whether the sentence says so.

Rule: both ends stand where the cue's grammar puts them (`pairing`), or the subject is the one
name of the sentence before that a pronoun can mean. Nothing that cannot fit the property's domain or range is taken.
A claim that the sentence denies or doubts, or whose end could be of several classes, is handed on with the reason.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from sameas.extraction.extractors.lexicon.clause import Clause, Left
from sameas.extraction.extractors.lexicon.cues import DERIVED, Cue
from sameas.extraction.extractors.lexicon.lists import Listed, listed_after, listed_before
from sameas.extraction.extractors.lexicon.look import Look, Pair, Scene
from sameas.extraction.extractors.lexicon.noun_pairing import Fit
from sameas.extraction.extractors.lexicon.pairing import Pairing
from sameas.extraction.extractors.lexicon.phrases import Match
from sameas.extraction.extractors.lexicon.pronouns import Antecedents
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.graph.stance import Stance, stance_of
from sameas.extraction.text.document import Span

Doubt: TypeAlias = Stance | Literal["ambiguous_type"]

_RESPECTIVELY = re.compile(r"\b(?:respectively|jeweils|respectivement|respectivamente)\b", re.IGNORECASE)
# Ends are looked for among so many mentions on either side of a cue.
_REACH = 24


# How often such facts were right in the corpus of texts with complete gold, which the lexicon never saw: 377 of 472
# between things whose classes were known, 86 of 128 where one was guessed or the subject stood in the sentence before.
BOTH_KNOWN, ONE_GUESSED, CARRIED = 0.8, 0.67, 0.13


class StatedRelation(NamedTuple):
    """A claim and, if the sentence does not plainly state it, why not."""

    claim: Claim
    doubt: Doubt


class _Found(NamedTuple):
    said: StatedRelation
    pair: Pair
    score: tuple[int, int]


class Associator:
    """Relates mentions around cues. `fit_subject` and `fit_object` say what a property accepts, and in which form;
    `is_open` says that an end was not accepted only because several classes fit.
    """

    def __init__(
        self,
        *,
        fit_subject: Fit,
        fit_object: Fit,
        is_open: Callable[[Mention, str], bool],
        is_functional: Callable[[str], bool],
        is_class: Callable[[str], bool],
        antecedents: Antecedents,
    ) -> None:
        self._pairing = Pairing(
            fit_subject=fit_subject, fit_object=fit_object, is_open=is_open, antecedents=antecedents
        )
        self._fit_subject = fit_subject
        self._fit_object = fit_object
        self._is_functional = is_functional
        self._is_class = is_class

    def claims(
        self, scene: Scene, matches: Iterable[Match[Cue]], *, allowed: Callable[[str], bool]
    ) -> Iterator[StatedRelation]:
        """The claims of a sentence: for each cue those of its best property with a thing, and with a value.

        What stands inside a longer cue that gave a claim is not looked at again, but its beginning is: `born` may
        give a date where `born in` gives a place.
        """
        spent = 0
        begun = -1
        last: Left | None = None
        for match in matches:
            if match.end <= spent and match.start != begun:
                continue
            cues = [cue for cue in match.payload if allowed(cue.property)]
            if not cues:
                continue
            looks = self._looks(scene, match, cues, last)
            found = [one for one in map(self._best, looks) if one is not None]
            for chosen in _chosen(found):
                if match.end > spent:
                    spent, begun = match.end, match.start
                left = chosen.pair.left
                if left is not None:
                    last = Left(left.mention, max(match.end, chosen.pair.subject.end, chosen.pair.target.end))
                yield from self._with_lists(scene, chosen.said, match)

    def _looks(self, scene: Scene, match: Match[Cue], cues: Sequence[Cue], last: Left | None) -> list[Look]:
        at = bisect_left(scene.mentions, match.start, key=lambda mention: mention.start)
        near = scene.mentions[max(0, at - _REACH) : at + _REACH]
        left = [m for m in reversed(near) if m.end <= match.start and m.kind != "literal"]
        right = [m for m in near if m.start >= match.end]
        clause = Clause(scene.text, scene.sentence.start, names=left, is_class=self._is_class, last=last)
        return [Look(scene, match, cue, clause, left, right) for cue in cues]

    def _best(self, look: Look) -> _Found | None:
        scene, cue = look.scene, look.cue
        pair = self._pairing.pair(look)
        is_loose = pair is None
        pair = pair or self._pairing.loose(look)
        if pair is None or pair.subject.span == pair.target.span:
            return None
        doubt: Doubt = self._stance(look, pair)
        if is_loose and not doubt:
            return None
        subject, target = pair.subject, pair.target
        # The ends carry the classes that the property gave them; what was known before is what counts.
        ends = (subject.start, target.start)
        known = 2 - sum(m.start in ends and not _is_known(m) for m in (*look.left, *look.right))
        if not known and cue.weight == DERIVED:
            # A made-up form between two names of unknown classes is a guess on a guess.
            return None
        if not doubt and _RESPECTIVELY.search(scene.text, scene.sentence.start, scene.sentence.end):
            # Who goes with whom is told by the order of two lists.
            doubt = "hedged"
        if not doubt and any(end.kind == "name" and not end.types for end in (subject, target)):
            doubt = "ambiguous_type"
        confidence = BOTH_KNOWN if known == 2 else ONE_GUESSED
        start = min(scene.sentence.start, subject.start)
        if start < scene.sentence.start:
            confidence -= CARRIED
        claim = Claim(subject, cue.property, target, Span(start, scene.sentence.end), round(confidence, 2))
        return _Found(StatedRelation(claim, doubt), pair, (known, cue.weight))

    def _stance(self, look: Look, pair: Pair) -> Stance:
        text, sentence, match = look.text, look.scene.sentence, look.match
        ends = sorted((pair.subject, pair.target), key=lambda end: end.start)
        low = max(sentence.start, min(ends[0].start, match.start))
        high = max(ends[1].end, match.end)
        inner_from = low
        if pair.left is not None and not look.is_base_form():
            inner_from = max(low, min(pair.left.group, match.start))
        if ends[0].start < sentence.start:
            inner_from = low = sentence.start
        spans = sorted([(end.start, end.end) for end in ends] + [(match.start, match.head or match.end)])
        pieces, place = [], inner_from
        for start, end in spans:
            if start > place:
                pieces.append(text[place:start])
            place = max(place, end)
        pieces.append(text[place:high])
        group = text[look.clause.group(match.start) : match.start] if look.cue.use != "nominal" else ""
        return stance_of(text[sentence.start : low], " ".join(pieces), text[high : sentence.end], group=group)

    def _with_lists(self, scene: Scene, said: StatedRelation, match: Match[Cue]) -> Iterator[StatedRelation]:
        """The claim, and the same for the other members of a list that an end belongs to."""
        claim = said.claim
        targets = self._listed(scene, claim.object, match)
        subjects = self._listed(scene, claim.subject, match)
        doubt = said.doubt
        # Of two values for a property that has one, nobody can tell which is meant, or whose.
        several = bool(targets.others) and self._is_functional(claim.predicate)
        if not doubt and (targets.is_choice or subjects.is_choice or several):
            doubt = "hedged"
        yield StatedRelation(claim, doubt)
        for other in targets.others:
            fitted = self._fit_object(other, claim.predicate)
            if fitted is None or other.span == claim.subject.span:
                break
            yield StatedRelation(msgspec.structs.replace(claim, object=fitted), doubt)
        for other in subjects.others:
            fitted = self._fit_subject(other, claim.predicate)
            if fitted is None or other.span == claim.object.span:
                break
            yield StatedRelation(msgspec.structs.replace(claim, subject=fitted), doubt)

    def _listed(self, scene: Scene, end: Mention, match: Match[Cue]) -> Listed:
        if end.start < scene.sentence.start:
            return Listed()
        if end.start >= match.end:
            return listed_after(scene.text, scene.mentions, end)
        found = listed_before(scene.text, scene.mentions, end)
        clause = Clause(scene.text, scene.sentence.start, names=(), is_class=self._is_class, last=None)
        return found if found.others and clause.begins(found.others[-1]) else Listed()


def _chosen(found: Sequence[_Found]) -> Iterator[_Found]:
    """The best with a thing and the best with a value: what is stated before what is not, then what is known."""
    for is_value in (False, True):
        those = [one for one in found if (one.said.claim.object.kind == "literal") is is_value]
        if those:
            top = max((one.score[0], not one.said.doubt, one.score[1]) for one in those)
            yield min(
                (one for one in those if (one.score[0], not one.said.doubt, one.score[1]) == top),
                key=lambda one: one.said.claim.predicate,
            )


def _is_known(mention: Mention) -> bool:
    """Whether its class, or at least its kind, is plain."""
    return bool(mention.types) or mention.kind == "literal" or mention.looks_like in ("person", "organisation", "place")

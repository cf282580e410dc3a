"""What a model may answer: the JSON schemas that are sent, and the same forms to check every reply with.

Rule: no enumerations, because providers limit their number; classes, properties and things are integers. A schema is
a wish: whatever comes back is decoded here again, and what does not fit is an error with words that can be sent back.
Of several answers counts what enough of them say.
"""

import json
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from typing import Annotated, Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Meta

from sameas.extraction.graph.model import ConfidenceSource
from sameas.identity.errors import SameasError

T = TypeVar("T", bound=msgspec.Struct)
K = TypeVar("K", bound=Hashable)

_LONGEST_NAME = 1000
_MANY = 500
_LONGEST_ERROR = 200
# Each one that begins no object may be read to the end of the reply.
_BRACES_TRIED = 64
# Where the prompts show the form of a reply, names are these.
_AS_SHOWN = '"..."'
_COMMA_TOO_MANY = re.compile(r",(\s*[}\]])")
_FENCED = re.compile(r"\A\s*```[a-zA-Z]*\s*(.*?)\s*```\s*\Z", re.DOTALL)

Name = Annotated[str, Meta(max_length=_LONGEST_NAME)]
Sure = Annotated[float, Meta(ge=0, le=100)]


class Rated(Protocol):
    """What a model may say how sure it is of."""

    @property
    def confidence(self) -> float | None: ...


def percent_of(items: Iterable[Rated]) -> Callable[[Rated], float | None]:
    """How sure the model is of each item of a reply, in percent.

    It was asked for percents. A reply in which nothing is above 1 gives shares instead, as models often do.
    """
    ratings = [one.confidence for one in items if one.confidence is not None]
    scale = 100 if ratings and max(ratings) <= 1 else 1
    return lambda one: None if one.confidence is None else one.confidence * scale


class NamedEntity(msgspec.Struct, frozen=True):
    """A name as it stands in the text, and the number of its class."""

    name: Name
    type: int
    confidence: Sure | None = None


class EntityReply(msgspec.Struct, frozen=True):
    """The answer to `entities`."""

    entities: Annotated[tuple[NamedEntity, ...], Meta(max_length=_MANY)]
    values: Annotated[tuple[Name, ...], Meta(max_length=_MANY)] = ()


class NumberedRelation(msgspec.Struct, frozen=True):
    """A fact between two of the listed things."""

    subject: int
    property: int
    object: int
    confidence: Sure | None = None


class RelationReply(msgspec.Struct, frozen=True):
    """The answer to `relations`."""

    relations: Annotated[tuple[NumberedRelation, ...], Meta(max_length=_MANY)]


class NamedRelation(msgspec.Struct, frozen=True):
    """A fact between two names, or a name and a value, as they stand in the text."""

    subject: Name
    property: int
    object: Name
    confidence: Sure | None = None


class JointReply(msgspec.Struct, frozen=True):
    """The answer to `joint`."""

    entities: Annotated[tuple[NamedEntity, ...], Meta(max_length=_MANY)]
    relations: Annotated[tuple[NamedRelation, ...], Meta(max_length=_MANY)]


class GroundingReply(msgspec.Struct, frozen=True):
    """The answer to `grounding`."""

    supported: Annotated[tuple[int, ...], Meta(max_length=_MANY)]


class BadReplyError(SameasError, ValueError):
    """A reply does not have the form that was asked for; the message can be sent back to the model."""


@cache
def schema_of(kind: type[T], *, with_confidence: bool = False) -> dict[str, Any]:
    """The JSON schema that is sent: closed objects, everything required, as the strictest providers want it.

    It is the same object each time, so that what is made of it is made once: leave it as it is.
    """
    properties: dict[str, dict[str, Any]] = {}
    integer, string = {"type": "integer"}, {"type": "string"}
    sure = {"confidence": integer} if with_confidence else {}
    entity = _closed({"name": string, "type": integer, **sure})
    if kind is EntityReply:
        properties = {"entities": _list_of(entity), "values": _list_of(string)}
    elif kind is RelationReply:
        relation = _closed({"subject": integer, "property": integer, "object": integer, **sure})
        properties = {"relations": _list_of(relation)}
    elif kind is JointReply:
        relation = _closed({"subject": string, "property": integer, "object": string, **sure})
        properties = {"entities": _list_of(entity), "relations": _list_of(relation)}
    elif kind is GroundingReply:
        properties = {"supported": _list_of(integer)}
    else:
        raise TypeError(f"{kind.__name__} is no reply")
    return _closed(properties)


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def read_reply(text: str, kind: type[T]) -> T:
    """The reply as an object; raises `BadReplyError`.

    What is common and harmless is no fault: a fence of back-ticks around it, numbers as texts, a comma too many, breaks
    in texts, another object around it, and words before and after it, as long as one object among them has the form
    that was asked for, and no other one does.
    """
    fenced = _FENCED.match(text)
    body = (fenced[1] if fenced else text).strip()
    if not body:
        raise BadReplyError("it was empty")
    try:
        return msgspec.convert(msgspec.json.decode(body), kind, strict=False)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        found = _among_words(body, kind)
        if found is None:
            found = _among_words(_COMMA_TOO_MANY.sub(r"\1", body), kind)
        if found is not None:
            return found
        fault = "it has not the form that was asked for" if _is_misshapen(error) else "it is not JSON"
        raise BadReplyError(f"{fault}: {_short(error)}") from error


def _is_misshapen(error: Exception) -> bool:
    return isinstance(error, msgspec.ValidationError)


def _among_words(text: str, kind: type[T]) -> T | None:
    """The one object of this form in a text; None where there is none, or where two differ. The form itself, as the
    prompt shows it and small models repeat it, is none.
    """
    found: T | None = None
    at, decoder = text.find("{"), json.JSONDecoder(strict=False)
    for _ in range(_BRACES_TRIED):
        if at < 0:
            return found
        try:
            value, end = decoder.raw_decode(text, at)
            one = msgspec.convert(value, kind, strict=False)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        is_form, at = _AS_SHOWN in text[at:end], text.find("{", end)
        if is_form:
            continue
        if found is not None and one != found:
            return None
        found = one
    return None


def _short(error: Exception) -> str:
    return str(error)[:_LONGEST_ERROR]


class SampledItem(NamedTuple, Generic[K]):
    """One statement of one answer, with the model's own confidence in percent where it gave one."""

    what: K
    confidence: float | None = None


class Agreed(NamedTuple, Generic[K]):
    """A statement that stands; `confidence` is None where a rule has to judge."""

    what: K
    confidence: float | None
    source: ConfidenceSource


def agree(samples: Sequence[Iterable[SampledItem[K]]], *, minimum: float) -> list[Agreed[K]]:
    """The statements of the samples that enough of them make, in the order of their first appearance.

    With several samples, confidence is the share of them that say it. With one, it is what the model says of itself
    where it was asked, and a rule's judgement otherwise. Equal answers in any order give the same result.
    """
    ratings: dict[K, list[float | None]] = {}
    for sample in samples:
        # Once for each sample, however often it repeats itself.
        for what, confidence in {one.what: one.confidence for one in sample}.items():
            ratings.setdefault(what, []).append(confidence)
    if len(samples) > 1:
        total = len(samples)
        return [
            Agreed(what, round(len(times) / total, 2), "agreement")
            for what, times in ratings.items()
            if len(times) / total >= minimum
        ]
    return [
        Agreed(what, None, "rule") if sure is None else Agreed(what, round(sure / 100, 4), "model")
        for what, (sure,) in ratings.items()
    ]

"""A scripted model that reads the prompts of extraction and answers from facts that it was given.

It sees what a model sees: the numbered classes, properties and things, and the fenced text. So it shows that a prompt
holds what is needed, and it can answer any chunk of a long text.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.servers.model_script import Call

Fact = tuple[str, str, str]
"""A subject, the label of a property, and an object."""

_CLASSES = re.compile(r"^Classes \(.*\):\n((?:\d+ .*\n?)*)", re.MULTILINE)
_PROPERTIES = re.compile(r"^Properties \(.*\):\n((?:\d+ .*\n?)*)", re.MULTILINE)
_PROPERTY = re.compile(r"(\d+) (.*?)\((.*?) -> (.*?)\)")
_FENCED = re.compile(r"^(=====\[[0-9a-f]+\]=====)\n(.*?)\n\1$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Seen:
    """What a prompt shows."""

    text: str
    classes: Mapping[str, int] = field(default_factory=dict)
    properties: Mapping[str, tuple[int, str, str]] = field(default_factory=dict)
    things: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, system: str, user: str) -> "Seen":
        blocks = [block for _, block in _FENCED.findall(user)]
        things = {}
        for line in blocks[1].split("\n") if len(blocks) > 1 else ():
            number, _, rest = line.partition(" ")
            things[rest.rpartition(", ")[0]] = int(number)
        return cls(
            text=blocks[0],
            classes={
                line.partition(" ")[2].partition(" < ")[0].partition(": ")[0]: int(line.partition(" ")[0])
                for line in _lines(_CLASSES, system)
            },
            properties={
                match[2]: (int(match[1]), match[3], match[4])
                for line in _lines(_PROPERTIES, system)
                if (match := _PROPERTY.match(line))
            },
            things=things,
        )


class Oracle:
    """Answers with the facts whose ends both stand in the text that it is shown."""

    def __init__(self, facts: Iterable[Fact] | Callable[[str], Iterable[Fact]], types: Mapping[str, str] | None = None):
        self._facts = facts
        self._types = types or {}

    def __call__(self, call: Call) -> Any:
        return self.answer(call.schema_name, Seen.of(call.system, asked(call)))

    def answer(self, schema_name: str, seen: Seen) -> Any:
        """The reply to a question of this form."""
        facts = [fact for fact in self._known(seen.text) if fact[1] in seen.properties]
        match schema_name:
            case "EntityReply":
                entities, values = self._things(seen, facts)
                return {"entities": entities, "values": values}
            case "JointReply":
                relations = [
                    {"subject": subject, "property": seen.properties[name][0], "object": target}
                    for subject, name, target in facts
                ]
                return {"entities": self._things(seen, facts)[0], "relations": relations}
            case "GroundingReply":
                return {"supported": list(seen.things.values())}
            case _:
                return {
                    "relations": [
                        {
                            "subject": seen.things[subject],
                            "property": seen.properties[name][0],
                            "object": seen.things[target],
                        }
                        for subject, name, target in facts
                        if subject in seen.things and target in seen.things
                    ]
                }

    def _known(self, text: str) -> Iterable[Fact]:
        facts = self._facts(text) if callable(self._facts) else self._facts
        return [fact for fact in facts if fact[0] in text and fact[2] in text]

    def _things(self, seen: Seen, facts: Iterable[Fact]) -> tuple[list[dict[str, Any]], list[str]]:
        entities: dict[str, dict[str, Any]] = {}
        values: dict[str, None] = {}
        for subject, name, target in facts:
            _, domain, reach = seen.properties[name]
            for end, kind in ((subject, domain), (target, reach)):
                number = seen.classes.get(self._types.get(end, kind.partition("|")[0]))
                if number is None:
                    values[end] = None
                else:
                    entities.setdefault(end, {"name": end, "type": number})
        return list(entities.values()), [value for value in values if value not in entities]


def asked(call: Call) -> str:
    """The question: examples stand before it, and in a repair more is said after it."""
    return next(one for one in reversed(call.said) if _FENCED.search(one))


def _lines(pattern: re.Pattern[str], text: str) -> list[str]:
    found = pattern.search(text)
    return [line for line in found[1].split("\n") if line] if found else []

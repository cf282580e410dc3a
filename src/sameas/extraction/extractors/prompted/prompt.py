"""The prompts, each a file with a version in its first line.

Rule: a prompt's words change only together with its version, which is part of the extraction's key; the digest of the
file is part of it too, so that a forgotten version costs a repeated run and never a stale one. What comes from a
document stands between fence lines that occur nowhere in it. Filling is by name, and a name that is missing is an
error.
"""

import hashlib
from functools import cache
from importlib.resources import files
from string import Template
from typing import Literal, TypeAlias

import msgspec

from sameas.llm.models import Message

PromptName: TypeAlias = Literal["entities", "relations", "joint", "grounding", "repair"]

_SEPARATOR = "\n---\n"
_VERSION = "version: "
_FENCE_DIGITS = 12


class Prompt(msgspec.Struct, frozen=True):
    """What is said to the model first, and what is asked; both have places to be filled.

    The first part holds what is the same for many chunks, so that it is counted once here and cached by providers.
    """

    name: PromptName
    version: str
    system: str
    user: str

    def messages(self, **parts: str) -> tuple[Message, ...]:
        """The two messages of a question; a part is put in as it is, whatever signs are in it."""
        return (Message("system", Template(self.system).substitute(parts)), Message("user", self.filled(**parts)))

    def filled(self, **parts: str) -> str:
        return Template(self.user).substitute(parts)

    @property
    def identity(self) -> str:
        """What goes into a key: the version, and a digest of the words themselves."""
        words = hashlib.sha256(f"{self.system}{_SEPARATOR}{self.user}".encode()).hexdigest()
        return f"{self.version}-{words[:16]}"


@cache
def prompt(name: PromptName) -> Prompt:
    """The prompt of a file in `prompts/`."""
    content = (files(__package__) / "prompts" / f"{name}.md").read_text("utf-8")
    head, *parts = content.rstrip("\n").split(_SEPARATOR)
    if not head.startswith(_VERSION) or not 1 <= len(parts) <= 2:
        raise ValueError(f"prompts/{name}.md must be a line 'version: N', then one or two parts after lines of ---")
    *system, user = parts
    return Prompt(name, head.removeprefix(_VERSION).strip(), "".join(system), user)


def fence(text: str) -> str:
    """A line that stands nowhere in the text and is the same for the same text."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    for length in range(_FENCE_DIGITS, len(digest) + 1):
        line = f"=====[{digest[:length]}]====="
        if line not in text:
            return line
    raise ValueError("the text contains its own digest: that cannot be")

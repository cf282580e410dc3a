"""What a decision of a person holds on to: the atoms on its two sides.

Rule: a decision names things, and holds through every later change of the documents; so it is written down with the
atoms that the things were when it was made, the most frequent first, by what they are and not by numbers.
"""

from sameas.collections.changes import Changing
from sameas.collections.errors import CollectionError
from sameas.collections.model import Verdict
from sameas.collections.names import normal_name
from sameas.collections.resolution import home_id
from sameas.collections.scoring import Atom


def anchors_of(
    change: Changing, sides: dict[str, tuple[int, str, str]], verdict: Verdict, *, given: tuple[str, str], base: str
) -> list[dict[str, object]]:
    """The rows of a new decision about two things, as they were given: by id, IRI or name."""
    atoms = {side: change.atoms.of_entity(number) for side, (number, _, _) in sides.items()}
    if sides["a"][0] == sides["b"][0]:
        if verdict == "same":
            raise CollectionError(f"{given[0]!r} and {given[1]!r} are one thing already: {sides['a'][1]}")
        atoms = {
            side: [atom for atom in atoms[side] if _is_meant(atom, text.removeprefix(base))]
            for side, text in zip("ab", given, strict=True)
        }
        common = {atom.id for atom in atoms["a"]} & {atom.id for atom in atoms["b"]}
        if not atoms["a"] or not atoms["b"] or common:
            raise CollectionError(
                f"{given[0]!r} and {given[1]!r} are one thing, and these names do not say where to part it. "
                "Give two of its names, or two ids that were merged into it"
            )
    return [
        {"side": side, "place": place, "digest": atom.digest, "name_key": atom.name, "family": atom.family}
        for side, members in atoms.items()
        for place, atom in enumerate(sorted(members, key=lambda atom: (-atom.nodes, atom.digest)))
    ]


def _is_meant(atom: Atom, text: str) -> bool:
    return text == home_id(atom) or normal_name(text) == atom.name

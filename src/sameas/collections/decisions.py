"""What people decide of two things, and what a decision holds on to: the atoms on its two sides.

Rule: a decision names things, and holds through every later change of the documents; so it is written down with the
atoms that the things were when it was made, the most frequent first, by what they are and not by numbers.
"""

from sameas.collections.changes import Changing
from sameas.collections.errors import CollectionError, DecisionNotFoundError
from sameas.collections.model import Decision, Verdict
from sameas.collections.names import normal_name
from sameas.collections.resolution import home_id
from sameas.collections.scoring import Atom
from sameas.collections.views import Reader
from sameas.identity.ids import uuid7


def decided_before(reader: Reader, verdict: Verdict, a: str, b: str) -> Decision | None:
    """The decision in force that says just this: who sends it again, because no answer came, gets it again."""
    asked = {a.removeprefix(reader.base), b.removeprefix(reader.base)}
    rows = reader.session.run("decisions", collection=reader.collection, before="", most=1 << 62)
    return next(
        (reader.decision(row[0]) for row in rows if row[1] == verdict and not row[9] and {row[2], row[3]} == asked),
        None,
    )


def decide(
    change: Changing, reader: Reader, verdict: Verdict, a: str, b: str, *, by: str, reason: str, now: str
) -> Decision:
    """Write a decision down, as things are before it has any effect; the caller finishes the change."""
    sides = {"a": reader.resolve_id(reader.find(a)), "b": reader.resolve_id(reader.find(b))}
    anchors = _anchors(change, sides, verdict, given=(a, b), base=reader.base)
    made = Decision(
        id=str(uuid7()), verdict=verdict, a=sides["a"][1], b=sides["b"][1], a_name=sides["a"][2],
        b_name=sides["b"][2], by=by, reason=reason, at=now,
    )  # fmt: skip
    change.session.run(
        "add_decision", collection=change.collection, id=made.id, verdict=verdict, a_entity=made.a, b_entity=made.b,
        a_name=made.a_name, b_name=made.b_name, decided_by=by, reason=reason, now=now,
    )  # fmt: skip
    own = {"collection": change.collection, "decision": made.id}
    change.session.run_many("add_anchor", [{**anchor, **own} for anchor in anchors])
    change.resolution.note_decision(made.id)
    return made


def undo(change: Changing, decision: str, *, by: str, now: str) -> None:
    """Take a decision back; the caller finishes the change."""
    change.session.run("undo_decision", collection=change.collection, id=decision, now=now, undone_by=by)
    if not change.session.changed:
        raise DecisionNotFoundError(f"there is no decision {decision!r} in force. List the decisions")
    change.resolution.note_decision(decision)


def _anchors(
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

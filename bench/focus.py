"""How much of what texts say is in their focus, for an ontology that is too large for one prompt.

The ten ontologies of Text2KGBench and schema.org are one ontology here. Of each train sentence the relation that it was
chosen for is known: it must be among the properties in focus. Prints recall, and how large a focus is.
"""

import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from sameas.ontology import Focuser, FocusSettings, Ontology, OntologyIndex, load_ontology

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
PARTS = ("classes", "properties", "individuals", "datatypes")


class Gold(msgspec.Struct, frozen=True):
    """A sentence and the relation that it states."""

    text: str
    relation: str


class Recall(msgspec.Struct, frozen=True):
    """What share of the relations was in focus, and how much else was."""

    sentences: int
    found: int
    classes: float
    properties: float
    milliseconds: float

    @property
    def share(self) -> float:
        return self.found / self.sentences


class _Line(msgspec.Struct, frozen=True):
    sent: str
    rel: str


def merged(shared: Path = SHARED) -> Ontology:
    """Every ontology of the benchmark, and schema.org, as one."""
    paths = [*sorted((shared / "text2kgbench" / "ontologies").glob("*.json")), shared / "ontologies" / "schemaorg.ttl"]
    whole = Ontology()
    for path in paths:
        one = load_ontology(path)
        whole = msgspec.structs.replace(whole, **{part: (*getattr(whole, part), *getattr(one, part)) for part in PARTS})
    return msgspec.structs.replace(
        whole, **{part: tuple(sorted(getattr(whole, part), key=lambda term: term.iri)) for part in PARTS}
    )


def gold(shared: Path = SHARED, *, every: int = 1) -> Iterator[tuple[str, Gold]]:
    """The train sentences, each with the name of its ontology; every so many of them."""
    decoder = msgspec.json.Decoder(_Line)
    for path in sorted((shared / "text2kgbench" / "train").glob("*.jsonl")):
        name = path.stem.removesuffix("_train")
        for line in path.read_bytes().splitlines()[::every]:
            one = decoder.decode(line)
            yield name, Gold(one.sent, f"{name}/relations#{one.rel}")


def measure(focuser: Focuser, sentences: list[Gold]) -> Recall:
    """The share of the sentences whose relation is in focus."""
    start = time.perf_counter()
    foci = [focuser.focus(one.text) for one in sentences]
    spent = time.perf_counter() - start
    return Recall(
        sentences=len(foci),
        found=sum(
            any(iri.endswith(one.relation) for iri in focus.properties)
            for one, focus in zip(sentences, foci, strict=True)
        ),
        classes=statistics.mean(len(focus.classes) for focus in foci),
        properties=statistics.mean(len(focus.properties) for focus in foci),
        milliseconds=1000 * spent / len(foci),
    )


def main(*arguments: str) -> int:
    """Every train sentence, or every Nth of them."""
    if not SHARED.is_dir():
        print(f"no data in {SHARED}: the sentences and ontologies of Text2KGBench belong there", file=sys.stderr)
        return 1
    by_name: dict[str, list[Gold]] = {}
    for name, one in gold(every=int(arguments[0]) if arguments else 1):
        by_name.setdefault(name, []).append(one)
    ontology = merged()
    focuser = Focuser(OntologyIndex(ontology))
    focuser.focus("so that the index is built")
    print(f"{len(ontology.classes)} classes, {len(ontology.properties)} properties; at most {FocusSettings()}")
    print(f"{'sentences of':<18}{'in focus':>9}{'of':>7}{'recall':>9}{'classes':>9}{'properties':>12}{'ms':>8}")
    whole = [one for some in by_name.values() for one in some]
    for name, some in [*by_name.items(), ("all", whole)]:
        told = measure(focuser, some)
        print(
            f"{name:<18}{told.found:>9}{told.sentences:>7}{told.share:>9.3f}{told.classes:>9.1f}"
            f"{told.properties:>12.1f}{told.milliseconds:>8.1f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

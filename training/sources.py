"""The texts with gold facts that training reads, from wherever they lie, in one form."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from sameas.extraction.extractors.reader.labels import local_name
from sameas.ontology import OntologyIndex, load_ontology

# Of the 48 domains of the corpus: choices, thresholds and calibration are made on these and none is trained on.
VALIDATION = ("banking", "hospitals", "museums", "railways", "software", "television")
# Domains of our own corpus that were written after the weights were trained: confidence is fitted on them, too, until a
# next network is trained on them.
UNSEEN = (
    "auction-houses", "beekeeping", "canals", "circus", "coffee", "condominiums", "cooperatives", "cosmetics",
    "cv-lines", "dance-companies", "dental-practice", "dog-breeds", "emigrants", "fire-brigades", "fonts", "guitars",
    "inheritance", "lighthouses", "machine-tools", "marathons", "ministries", "mushrooms", "olive-oil",
    "philosophers", "pipe-organs", "product-recalls", "public-procurement", "roadworks", "roses", "standards",
    "tenancies", "volcanoes", "yarns", "zoos",
)  # fmt: skip
_LANGUAGES = {"german": "de", "french": "fr", "spanish": "es"}
LANGUAGES = ("en", "de", "fr", "es")


@dataclass(frozen=True)
class Sample:
    """A text with its facts."""

    source: str
    ontology: str
    split: str
    """`train`, `validation`, `examples` or `documents`."""
    text: str
    triples: tuple[tuple[str, str, str], ...]
    kinds: tuple[str, ...] = ()
    complete: bool = True
    """False where facts that the text states may be missing from the gold."""
    stances: tuple[tuple[int, int, str], ...] = ()
    """Stretches of characters whose stance is known."""
    renamed: frozenset[str] = field(default_factory=frozenset)

    @property
    def language(self) -> str:
        return next((_LANGUAGES[kind] for kind in self.kinds if kind in _LANGUAGES), "en")

    def moved(self, text: str, **changes: object) -> "Sample":
        return replace(self, text=text, **changes)  # type: ignore[arg-type]


def _rows(path: Path) -> Iterator[dict]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def _domain(source: str, folder: Path, files: dict[str, str]) -> tuple[str, OntologyIndex, list[Sample]]:
    name = f"{source}:{folder.name}"
    index = OntologyIndex(load_ontology(folder / "ontology.ttl"))
    samples = []
    for file, split in files.items():
        for row in _rows(folder / file):
            kinds = row.get("kind") or ()
            kinds = tuple(kinds.split()) if isinstance(kinds, str) else tuple(kinds)
            triples = tuple((str(s), str(p), str(o)) for s, p, o in row["triples"])
            samples.append(Sample(source, name, split, row["text"], triples, kinds))
    return name, index, samples


def _benchmark(source: str, ontology: Path, rows: Path, *, complete: bool) -> tuple[str, OntologyIndex, list[Sample]]:
    name = f"{source}:{ontology.stem.removesuffix('_ontology')}"
    index = OntologyIndex(load_ontology(ontology))
    samples = []
    for row in _rows(rows):
        triples = []
        for fact in row.get("triples") or [row]:
            ends = (
                fact.get("sub_label") or fact["sub"],
                fact.get("rel_label") or fact["rel"],
                fact.get("obj_label") or fact["obj"],
            )
            triples.append(
                tuple(str(end).replace("_", " ").strip('"') if at != 1 else str(end) for at, end in enumerate(ends))
            )
        samples.append(Sample(source, name, "train", row["sent"], tuple(triples), complete=complete))
    return name, index, samples


def property_names(index: OntologyIndex) -> dict[str, str]:
    """From what the gold calls a property to its IRI."""
    names = {local_name(iri): iri for iri in index.properties}
    for iri, one in index.properties.items():
        for label in one.labels:
            names.setdefault(label.value, iri)
    return names


def read_sources(trust: Path, text2kg: Path, own: Path | None) -> Iterator[tuple[str, OntologyIndex, list[Sample]]]:
    """Every ontology with its texts; `own` is the corpus of this repository."""
    for folder in sorted((trust / "corpus").iterdir()):
        split = "validation" if folder.name in VALIDATION else "train"
        yield _domain("corpus", folder, {"texts.jsonl": split})
    for folder in sorted(own.iterdir()) if own and own.is_dir() else ():
        if (folder / "ontology.ttl").exists() and (folder / "texts.jsonl").exists():
            yield _domain("own", folder, {"texts.jsonl": "train"})
    for folder in sorted(trust.iterdir()):
        if (folder / "documents.jsonl").exists():
            yield _domain("trust", folder, {"examples.jsonl": "examples", "documents.jsonl": "documents"})
    for source, root, complete in (("tekgen", text2kg, False), ("webnlg", text2kg / "webnlg", True)):
        for ontology in sorted((root / "ontologies").glob("*_ontology.json")):
            rows = root / "train" / f"ont_{ontology.name.removesuffix('_ontology.json')}_train.jsonl"
            yield _benchmark(source, ontology, rows, complete=complete)

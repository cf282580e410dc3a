"""Data to bundle: texts aligned with their gold, label texts, tokens and SmolLM2's weights, in two files for train.py.

python -m training.prep --trust DATA/trust --text2kg DATA/text2kgbench --out BUNDLE_FOLDER
"""

import argparse
import lzma
import pickle
import random
from collections import Counter
from pathlib import Path

import numpy as np

from sameas.extraction.extractors.reader.labels import (
    STYLES,
    describe_class,
    describe_property,
    language_of,
    local_name,
)
from sameas.extraction.extractors.reader.lessons import find_end, find_values, without_nested
from sameas.extraction.extractors.reader.tokenizer import Tokenizer
from sameas.ontology import OntologyIndex
from training.augmentation import multiply
from training.base_model import BaseModel, default_path
from training.sources import Sample, property_names, read_sources
from training.stances import STANCES

LABEL_TOKENS = 60
TEXT_TOKENS = 320
LAYERS = 30
TRUE, FALSE = -1, -2
_OCCURRENCES = 5


def _datatype(index: OntologyIndex, iri: str) -> str:
    groups = index.range(iri)
    names = [name for group in groups for name in group if index.is_datatype(name)]
    return local_name(names[0]) if names else ("string" if index.properties[iri].kind == "datatype" else "")


def describe_ontology(index: OntologyIndex, tokenizer: Tokenizer) -> dict:
    """Properties and classes of an ontology, with the tokens of their label texts in every style."""
    properties, classes = sorted(index.properties), sorted(index.classes)

    def styles(describe, iri, term) -> dict[str, np.ndarray]:
        texts = {}
        for style in STYLES:
            language = language_of(term) if style == "foreign" else "en"
            texts[style] = np.array(
                tokenizer.encode(describe(index, iri, style=style, language=language)).ids[:LABEL_TOKENS], np.uint16
            )
        return texts

    at = {iri: number for number, iri in enumerate(classes)}

    def implied(constraint) -> list[int]:
        """The classes that an end certainly has: those of a single-class constraint and all above."""
        names = [group[0] for group in constraint if len(group) == 1]
        return sorted({at[name] for one in names if one in at for name in (one, *index.ancestors(one)) if name in at})

    return {
        "properties": [local_name(iri) for iri in properties],
        "iris": properties,
        "datatypes": [_datatype(index, iri) for iri in properties],
        "property_tokens": [styles(describe_property, iri, index.properties[iri]) for iri in properties],
        "classes": [local_name(iri) for iri in classes],
        "class_tokens": [styles(describe_class, iri, index.classes[iri]) for iri in classes],
        "domain": [implied(index.domain(iri)) for iri in properties],
        "range": [implied(index.range(iri)) for iri in properties],
        "below": [sorted(at[name] for name in index.descendants(iri) if name in at) for iri in classes],
    }


def align(sample: Sample, described: dict, names: dict[str, str], tokenizer: Tokenizer) -> tuple[dict, int] | None:
    """A sample in tokens, and how many of its facts have an end that is not in the text; None if it is too long."""
    tokens = tokenizer.encode(sample.text)
    if not 2 <= len(tokens.ids) <= TEXT_TOKENS:
        return None
    number_of = {iri: number for number, iri in enumerate(described["iris"])}
    values = find_values(sample.text)
    keys: dict[str, int] = {}
    places: list[tuple[int, int, int]] = []
    facts: list[tuple[int, int, int]] = []
    lost = 0

    def name_of(said: str, datatype: str) -> int | None:
        key = said.casefold()
        if key not in keys:
            found = find_end(said, sample.text, values, datatype)[:_OCCURRENCES]
            if not found:
                return None
            keys[key] = len(keys)
            places.extend((keys[key], *span) for span in found)
        return keys[key]

    for subject, called, obj in sample.triples:
        number = number_of.get(names.get(called, ""), -1)
        if number < 0:
            lost += 1
            continue
        datatype = described["datatypes"][number]
        first = name_of(subject, "")
        second = {"true": TRUE, "false": FALSE}.get(obj) if datatype == "boolean" else name_of(obj, datatype)
        if first is None or second is None:
            lost += 1
            continue
        facts.append((first, number, second))
    starts, ends = np.array(tokens.starts), np.array(tokens.ends)

    def covered(start: int, end: int) -> tuple[int, int] | None:
        inside = np.flatnonzero((ends > start) & (starts < end) & (ends > starts))
        blank = [at for at in inside if sample.text[starts[at] : ends[at]].isspace()]
        inside = [at for at in inside if at not in blank] or list(inside)
        return (int(inside[0]), int(inside[-1])) if len(inside) else None

    kept = without_nested(places)
    alone = {name for name, _, _ in places} - {name for name, _, _ in kept}
    kept += [place for place in places if place[0] in alone]
    spans = sorted({(name, *where) for name, a, b in kept if (where := covered(a, b))}, key=lambda one: one[1:])
    types: dict[int, set[int]] = {}
    for first, number, second in facts:
        types.setdefault(first, set()).update(described["domain"][number])
        if second >= 0:
            types.setdefault(second, set()).update(described["range"][number])
    stance = np.full(len(tokens.ids), -1, np.int8)
    for first, _, second in facts:
        near = _nearest(spans, first, second)
        if near and sample.complete:
            stance[near[0] : near[1] + 1] = 0
    for a, b, told in sample.stances:
        where = covered(a, b)
        if where:
            stance[where[0] : where[1] + 1] = STANCES.index(told)
    return {
        "source": sample.source,
        "ontology": sample.ontology,
        "split": sample.split,
        "language": sample.language,
        "kinds": sample.kinds,
        "complete": sample.complete,
        "text": sample.text,
        "ids": np.array(tokens.ids, np.uint16),
        "starts": starts.astype(np.int16),
        "ends": ends.astype(np.int16),
        "spans": np.array(spans, np.int16).reshape(-1, 3),
        "names": len(keys),
        "facts": np.array(facts, np.int16).reshape(-1, 3),
        "types": {name: np.array(sorted(found), np.int16) for name, found in types.items()},
        "stance": stance,
        "values": [tuple(value) for value in values] if sample.split != "train" else [],
        "gold": [list(one) for one in sample.triples] if sample.split != "train" else [],
    }, lost


def _nearest(spans: list[tuple[int, int, int]], first: int, second: int) -> tuple[int, int] | None:
    """The tokens from one end of a fact to the other, where they stand nearest."""
    ones = [span for span in spans if span[0] == first]
    others = [span for span in spans if span[0] == second] if second >= 0 else ones
    pairs = [(min(a[1], b[1]), max(a[2], b[2])) for a in ones for b in others]
    return min(pairs, key=lambda pair: pair[1] - pair[0]) if pairs else None


def _ends(described: dict) -> dict[str, tuple[str, str]]:
    """The classes of each property's ends by name, the lowest of each; empty where none or a value is meant."""

    def lowest(found: list[int]) -> str:
        return next(
            (described["classes"][at] for at in found if not set(described["below"][at]) & set(found) - {at}), ""
        )

    return {
        name: (lowest(described["domain"][at]), lowest(described["range"][at]))
        for at, name in enumerate(described["properties"])
    }


def build(trust: Path, text2kg: Path, own: Path | None, gguf: Path, out: Path, layers: int) -> None:
    base = BaseModel(gguf)
    tokenizer = Tokenizer(base.vocabulary(), base.merges())
    rng = random.Random(17)
    documents, ontologies, lost, facts = [], {}, Counter(), Counter()
    for name, index, samples in read_sources(trust, text2kg, own):
        described = describe_ontology(index, tokenizer)
        names = property_names(index)
        training = [sample for sample in samples if sample.split == "train"]
        if training and training[0].source in ("corpus", "own"):
            training = multiply(training, _ends(described), rng)
        ontologies[name] = described
        for sample in training + [sample for sample in samples if sample.split != "train"]:
            aligned = align(sample, described, names, tokenizer)
            if aligned is None:
                lost["too long"] += 1
                continue
            documents.append(aligned[0])
            lost[sample.source] += aligned[1]
            facts[sample.source] += len(sample.triples)
    texts = [
        label for one in ontologies.values() for kind in ("property_tokens", "class_tokens") for label in one[kind]
    ]
    used = np.unique(
        np.concatenate([doc["ids"] for doc in documents] + [ids for label in texts for ids in label.values()])
    )
    for doc in documents:
        doc["ids"] = np.searchsorted(used, doc["ids"]).astype(np.uint16)
    for label in texts:
        for style, ids in label.items():
            label[style] = np.searchsorted(used, ids).astype(np.uint16)
    rows, scales = base.embeddings()
    # The texts travel with the first part, so that it takes fewer layers.
    half = 12
    part_a = {
        "layers": {at: base.layer(at) for at in range(half)},
        "used": used,
        "rows": rows[used],
        "scales": scales[used],
        "documents": documents,
        "ontologies": ontologies,
    }
    part_b = {"layers": {at: base.layer(at) for at in range(half, layers)}}
    out.mkdir(parents=True, exist_ok=True)
    for name, part in (("partA", part_a), ("partB", part_b)):
        with lzma.open(out / f"{name}.pickle.xz", "wb", preset=1) as file:
            pickle.dump(part, file, protocol=5)
    print(Counter((doc["source"], doc["split"]) for doc in documents))
    print("languages", Counter(doc["language"] for doc in documents if doc["split"] == "train"))
    print(
        "stances",
        Counter(STANCES[int(doc["stance"].max())] if doc["stance"].max() >= 0 else "none" for doc in documents),
    )
    print("tokens in use", len(used), "facts", dict(facts), "not in the text", dict(lost))
    for file in sorted(out.glob("part*")):
        print(file.name, round(file.stat().st_size / 2**20, 1), "MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trust", type=Path, required=True)
    parser.add_argument("--text2kg", type=Path, required=True)
    parser.add_argument("--own", type=Path, default=Path(__file__).parent / "corpus")
    parser.add_argument("--gguf", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--layers", type=int, default=LAYERS, help="how many travel")
    told = parser.parse_args()
    build(told.trust, told.text2kg, told.own, told.gguf or default_path(), told.out, told.layers)


if __name__ == "__main__":
    main()

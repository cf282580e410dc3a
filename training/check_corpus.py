"""Whether the texts of a folder of domains keep the conventions of `training/corpus/README.md`.

`python -m training.check_corpus [FOLDER]` prints what is wrong, line by line, and the counts of each language.
"""

import json
import re
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path

from sameas.extraction.extractors.reader.labels import local_name
from sameas.extraction.extractors.reader.lessons import DATES, NUMBERS, find_end, find_name, find_values
from sameas.ontology import OntologyIndex, load_ontology

TAGS = frozenset(
    (
        "plain", "passive", "inverse", "coordination", "apposition", "place-chain", "pronoun", "definite", "alias", "relative-clause",
        "negation", "hedge", "question", "conditional", "former", "replaced", "date", "number", "unit", "lower-case", "quote",
        "list-bullets", "heading", "parenthesis", "cross-sentence", "distractor", "nofact", "german", "french", "spanish", "unicode", "typo",
    )
)  # fmt: skip
LANGUAGES = ("german", "french", "spanish")
_FORMS = (
    (DATES, re.compile(r"\d{4}(-\d\d(-\d\d)?)?")),
    (frozenset(("integer",)), re.compile(r"-?\d+")),
    (NUMBERS, re.compile(r"-?\d+(\.\d+)?")),
    (frozenset(("boolean",)), re.compile(r"true|false")),
)
Triple = tuple[str, str, str]


def language_of(kind: list[str]) -> str:
    return next((tag for tag in LANGUAGES if tag in kind), "english")


class Domain:
    """One folder: its ontology and its rows."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.index = OntologyIndex(load_ontology(folder / "ontology.ttl"))
        self.iris = {local_name(iri): iri for iri in self.index.properties}
        lines = (folder / "texts.jsonl").read_text(encoding="utf-8").splitlines()
        self.rows = [json.loads(line) for line in lines if line.strip()]

    def faults(self) -> list[str]:
        return [f"{self.name}:{number}: {fault}" for number, row in enumerate(self.rows, 1) for fault in self._row(row)]

    def _datatype(self, name: str) -> str:
        """What kind of literal the property has; empty where its objects are things."""
        one = self.index.properties[self.iris[name]]
        return next((local_name(iri) for group in one.range for iri in group if self.index.is_datatype(iri)), "")

    def _row(self, row: dict) -> list[str]:
        text, kind = row["text"], row["kind"]
        triples = [(s, p, o) for s, p, o in row["triples"]]
        found = [f"unknown property {p}" for _, p, _ in triples if p not in self.iris]
        if found:
            return found
        if set(row) != {"text", "triples", "kind"} or not text.strip() or text != text.strip():
            found.append("a row is a text without blank ends, its triples and its kind")
        if len(set(triples)) != len(triples):
            found.append("a fact stands twice")
        if not kind or len(set(kind)) != len(kind) or set(kind) - TAGS:
            found.append(f"tags {kind}")
        if ("nofact" in kind) != (not triples):
            found.append("nofact stands exactly where the gold is empty")
        if ("unicode" in kind) == text.isascii():
            found.append("unicode stands exactly where the text is not ASCII")
        values = find_values(text)
        for s, p, o in triples:
            found += self._ends(text, values, s, p, o)
        return found + self._twins(set(triples)) + self._types(triples)

    def _ends(self, text: str, values: list, subject: str, name: str, obj: str) -> list[str]:
        found = []
        datatype = self._datatype(name)
        if not find_name(subject, text):
            found.append(f"subject {subject!r} is not in the text")
        if subject == obj:
            found.append(f"{subject!r} is related to itself")
        form = next((form for types, form in _FORMS if datatype in types), None)
        if form is not None and not form.fullmatch(obj):
            found.append(f"{obj!r} is no {datatype} of {name}")
        elif datatype != "boolean" and not find_end(obj, text, values, datatype):
            found.append(f"object {obj!r} of {name} is not in the text")
        if not datatype and re.fullmatch(r"[\d.,-]+|true|false", obj):
            found.append(f"{name} has no literal {obj!r}")
        return found

    def _twins(self, triples: set[Triple]) -> list[str]:
        """Facts that another fact of the text says already."""
        found = []
        for s, p, o in triples:
            one = self.index.properties[self.iris[p]]
            turned = {local_name(iri) for iri in one.inverses}
            turned |= {p} if one.symmetric else set()
            found += [f"both directions of {p}: {s!r}, {o!r}" for q in turned if (o, q, s) in triples]
            above = {local_name(iri) for iri in self.index.property_tree.above(self.iris[p])} - {p}
            found += [f"{q} beside the more specific {p}: {s!r}" for q in above if (s, q, o) in triples]
        return found

    def _types(self, triples: list[Triple]) -> list[str]:
        """Names that domain and range put into two classes that share no member."""
        types: dict[str, set[str]] = {}
        for s, p, o in triples:
            iri = self.iris[p]
            types.setdefault(s, set()).update(group[0] for group in self.index.domain(iri) if len(group) == 1)
            if not self._datatype(p):
                types.setdefault(o, set()).update(group[0] for group in self.index.range(iri) if len(group) == 1)
        return [
            f"{name!r} is {local_name(a)} and {local_name(b)}"
            for name, told in types.items()
            for a, b in combinations(sorted(told), 2)
            if self.index.are_disjoint(a, b)
        ]


def read_domains(folder: Path) -> list[Domain]:
    return [Domain(one) for one in sorted(folder.iterdir()) if (one / "ontology.ttl").exists()]


def check(domains: list[Domain]) -> list[str]:
    """Everything that is wrong in the domains, and texts that stand twice."""
    found = [fault for domain in domains for fault in domain.faults()]
    places: dict[str, list[str]] = {}
    for domain in domains:
        for number, row in enumerate(domain.rows, 1):
            places.setdefault(" ".join(row["text"].casefold().split()), []).append(f"{domain.name}:{number}")
    return found + [f"{' and '.join(at)}: the same text" for at in places.values() if len(at) > 1]


def counts(domains: list[Domain]) -> dict[str, Counter[str]]:
    """Texts, facts and empty texts of each language; a domain counts for the language of most of its texts."""
    told: dict[str, Counter[str]] = {}
    for domain in domains:
        languages = Counter(language_of(row["kind"]) for row in domain.rows)
        told.setdefault(languages.most_common(1)[0][0], Counter())["domains"] += 1
        for row in domain.rows:
            told.setdefault(language_of(row["kind"]), Counter()).update(
                texts=1, facts=len(row["triples"]), empty=int(not row["triples"])
            )
    return told


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "corpus"
    domains = read_domains(folder)
    found = check(domains)
    for fault in found:
        print(fault)
    for language, one in sorted(counts(domains).items()):
        print(f"{language}: " + ", ".join(f"{one[key]} {key}" for key in ("domains", "texts", "facts", "empty")))
    print(f"{len(found)} faults" if found else "no fault")
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())

"""More texts from the ones there are: facts taken back, names exchanged, two texts in one."""

import random
import re
from collections import defaultdict

from sameas.extraction.extractors.reader.lessons import find_name
from training.sources import LANGUAGES, Sample
from training.stances import OF_KIND, rewrite_around, rewrite_inside

_STOP = re.compile(r"[.!?][\"”»]?(?=\s|$)")
_BOOLEANS = ("true", "false")
_RATHER_NOT = frozenset(("apposition", "relative-clause", "parenthesis", "list-bullets", "heading", "quote"))


def sentences(text: str) -> int:
    """About how many sentences a text has."""
    plain = re.sub(r"\b(?:Nr|No|no|Dr|Mr|Ms|Mrs|St|\d)\.(?= )", "", text)
    return len(_STOP.findall(plain)) + plain.count("\n")


def with_known_stance(sample: Sample) -> Sample:
    """The sample with the stance of its whole text, where its tags leave no doubt."""
    if sample.triples or sentences(sample.text) > 1:
        return sample
    told = {OF_KIND[kind] for kind in sample.kinds if kind in OF_KIND}
    if len(told) != 1:
        return sample
    return sample.moved(sample.text, stances=((0, len(sample.text), told.pop()),))


def taken_back(samples: list[Sample], rng: random.Random) -> list[Sample]:
    """Sentences whose facts are denied, doubted, ended, asked or attributed: nothing is left in their gold."""
    made = []
    for sample in samples:
        single = sentences(sample.text) <= 1 and "\n" not in sample.text
        plain = single and not _RATHER_NOT & set(sample.kinds)
        if not sample.triples or not plain or any(o in _BOOLEANS for _, _, o in sample.triples):
            continue
        if len(sample.triples) > 2:
            continue
        ways = [rewrite_around(sample.text, sample.language, rng) for _ in range(2)]
        inside = rewrite_inside(sample.text, sample.triples[0][0], sample.language, rng)
        if inside and len({(s, p) for s, p, _ in sample.triples}) == 1:
            ways.append(inside)
        for text, stance in ways:
            made.append(sample.moved(text, triples=(), source="stance", stances=((0, len(text), stance),)))
    return made


def joined(samples: list[Sample], others: list[Sample], count: int, rng: random.Random) -> list[Sample]:
    """A text with facts and another of the same domain and language after or before it."""
    made = []
    full = [sample for sample in samples if sample.triples and sentences(sample.text) <= 3]
    for _ in range(count if full and others else 0):
        first, second = rng.choice(full), rng.choice(others)
        names = {end.casefold() for s, _, o in second.triples for end in (s, o)}
        clash = any(end.casefold() in names for s, _, o in first.triples for end in (s, o))
        if (
            first.language != second.language
            or clash
            or first.text == second.text
            or len(first.text + second.text) > 420
        ):
            continue
        if rng.random() < 0.5:
            first, second = second, first
        gap = rng.choice((" ", " ", "\n", "\n\n"))
        shift = len(first.text) + len(gap)
        stances = first.stances + tuple((start + shift, end + shift, one) for start, end, one in second.stances)
        source = "stance" if "stance" in (first.source, second.source) else first.source
        made.append(
            first.moved(
                first.text + gap + second.text,
                triples=first.triples + tuple(one for one in second.triples if one not in first.triples),
                stances=stances,
                source=source,
                kinds=tuple(sorted({*first.kinds, *second.kinds} - {"nofact"})),
            )
        )
    return made


def _looks(name: str) -> tuple[bool, bool]:
    return name[:1].isupper(), " " in name


def renamed(samples: list[Sample], ends_of: dict[str, tuple[str, str]], rng: random.Random) -> list[Sample]:
    """The same texts with names of the same kind exchanged between them; `ends_of` gives a property's two classes."""
    pool: dict[tuple[str, str, tuple[bool, bool]], list[str]] = defaultdict(list)
    kind_of: dict[tuple[int, str], tuple[str, str, tuple[bool, bool]]] = {}
    for at, sample in enumerate(samples):
        for s, p, o in sample.triples:
            domain, target = ends_of.get(p, ("", ""))
            for name, end in ((s, domain), (o, target)):
                if end and find_name(name, sample.text) and not re.search(r"\d", name):
                    kind_of.setdefault((at, name), (sample.language, end, _looks(name)))
    for (_, name), kind in kind_of.items():
        pool[kind].append(name)
    made = []
    for at, sample in enumerate(samples):
        names = {name for s, _, o in sample.triples for name in (s, o) if (at, name) in kind_of}
        # Acronyms and surnames of a name would be left behind.
        if not names or {"alias", "typo", "heading"} & set(sample.kinds):
            continue
        swap: dict[str, str] = {}
        for name in sorted(names):
            other = rng.choice(pool[kind_of[at, name]])
            last = name.split()[-1]
            alone = len(re.findall(rf"(?<!\w){re.escape(last)}(?!\w)", sample.text)) > len(find_name(name, sample.text))
            if other not in names and other not in swap.values() and other not in sample.text and not alone:
                swap[name] = other
        if not swap:
            continue
        pattern = "|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in sorted(swap, key=len, reverse=True))
        text = re.sub(pattern, lambda match: swap[match.group()], sample.text)
        triples = tuple((swap.get(s, s), p, swap.get(o, o)) for s, p, o in sample.triples)
        made.append(sample.moved(text, triples=triples, stances=()))
    return made


def multiply(samples: list[Sample], ends_of: dict[str, tuple[str, str]], rng: random.Random) -> list[Sample]:
    """All that one domain's training texts give."""
    assert {sample.language for sample in samples} <= set(LANGUAGES)
    plain = [with_known_stance(sample) for sample in samples]
    back = taken_back(plain, rng)
    more = renamed(plain, ends_of, rng)
    mixed = joined(plain, plain + back, len(plain) // 2, rng)
    return plain + more + back + mixed

"""Batches of texts of one ontology, with its labels shuffled and thinned each time, as tensors."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

TRUE, FALSE = -1, -2
_STYLES = ("wide", "english", "short", "foreign")
_STYLE_WEIGHTS = (0.5, 0.2, 0.15, 0.15)
_UNLABELLED = 0.02
_UNLABELLED_TAG = 0.05
_PLACES = 26
_PROPERTIES = 26
_CLASSES = 12


class Choice:
    """Which labels of an ontology a batch shows, and in what order."""

    def __init__(self, properties: Sequence[int], classes: Sequence[int], styles: Sequence[str]) -> None:
        self.properties, self.classes, self.styles = list(properties), list(classes), list(styles)
        self.at = {number: place for place, number in enumerate(self.properties)}


def all_labels(ontology: dict) -> Choice:
    """Every label, as for reading."""
    count = len(ontology["properties"]) + len(ontology["classes"])
    return Choice(range(len(ontology["properties"])), range(len(ontology["classes"])), ["wide"] * count)


def choose_labels(ontology: dict, documents: Sequence[dict], rng: random.Random, *, thin: float = 0.35) -> Choice:
    """A random part of the labels; now and then properties that the texts speak of are left out, too."""
    stated = sorted({int(fact[1]) for doc in documents for fact in doc["facts"]})
    if rng.random() < thin and len(stated) > 2:
        stated = rng.sample(stated, max(1, round(len(stated) * rng.uniform(0.4, 0.8))))
        rest: list[int] = []
    else:
        rest = [number for number in range(len(ontology["properties"])) if number not in set(stated)]
    if len(stated) > _PROPERTIES:
        stated = rng.sample(stated, _PROPERTIES)
    rng.shuffle(rest)
    chosen = stated + rest[: max(2, rng.randrange(6, _PROPERTIES) - len(stated))]
    rng.shuffle(chosen)
    classes = list(range(len(ontology["classes"])))
    rng.shuffle(classes)
    classes = classes[: rng.randrange(3, _CLASSES + 1)]
    count = len(chosen) + len(classes)
    if rng.random() < 0.5:
        styles = rng.choices(_STYLES, _STYLE_WEIGHTS) * count
    else:
        styles = rng.choices(_STYLES, _STYLE_WEIGHTS, k=count)
    return Choice(chosen, classes, styles)


def _pad(rows: Sequence[np.ndarray], fill: int = 0) -> tuple[Tensor, Tensor]:
    width = max(len(row) for row in rows)
    ids = np.full((len(rows), width), fill, np.int64)
    mask = np.zeros((len(rows), width), bool)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = row
        mask[at, : len(row)] = True
    return torch.from_numpy(ids), torch.from_numpy(mask)


def label_tensors(ontology: dict, choice: Choice) -> dict[str, Tensor]:
    """The labels' tokens, and which of the ends of properties are true and false."""
    terms = [ontology["property_tokens"][number] for number in choice.properties]
    terms += [ontology["class_tokens"][number] for number in choice.classes]
    ids, mask = _pad([term[style] for term, style in zip(terms, choice.styles, strict=True)])
    booleans = [ontology["datatypes"][number] == "boolean" for number in choice.properties]
    return {
        "label_ids": ids,
        "label_mask": mask,
        "label_kept": mask.flatten().nonzero().squeeze(1),
        "is_boolean": torch.tensor(booleans, dtype=torch.bool),
    }


def text_tensors(documents: Sequence[dict]) -> dict[str, Tensor]:
    ids, mask = _pad([doc["ids"] for doc in documents])
    return {"text_ids": ids, "text_mask": mask}


def _other_spans(doc: dict, taken: set[int], rng: random.Random) -> list[tuple[int, int]]:
    """Spans that are no mentions: random ones, and mentions with a wrong end."""
    length, found = len(doc["ids"]), []
    for _ in range(4):
        first = rng.randrange(length)
        last = min(length - 1, first + rng.randrange(4))
        if taken.isdisjoint(range(first, last + 1)):
            found.append((first, last))
    for _, first, last in rng.sample(list(doc["spans"]), min(2, len(doc["spans"]))):
        first, last = int(first), int(last)
        moved = (
            (first, min(length - 1, last + rng.choice((1, 2)))) if rng.random() < 0.5 else (min(first + 1, last), last)
        )
        if moved != (first, last):
            found.append(moved)
    return found


def training_batch(
    ontology: dict, documents: Sequence[dict], rng: random.Random, **thinning: float
) -> dict[str, Tensor]:
    """Tokens, labels and targets of a batch."""
    choice = choose_labels(ontology, documents, rng, **thinning)
    batch = label_tensors(ontology, choice) | text_tensors(documents)
    texts, width = batch["text_ids"].shape
    tags, tag_weight = np.zeros((texts, width), np.int64), batch["text_mask"].float().numpy().copy()
    stance = np.full((texts, width), -1, np.int64)
    places: list[list[tuple[int, int, int]]] = []
    facts: list[tuple[int, int, int, int]] = []
    kinds: list[tuple[int, int, int]] = []
    names_of: list[int] = []
    real: list[int] = []
    classes_at = {number: place for place, number in enumerate(choice.classes)}
    unknown_kinds: list[tuple[int, int, set[int]]] = []
    for row, doc in enumerate(documents):
        stated = [fact for fact in doc["facts"].tolist() if fact[1] in choice.at]
        alive = sorted({name for subject, _, target in stated for name in (subject, target) if name >= 0})
        number_of = {name: number for number, name in enumerate(alive)}
        spans = [(number_of[name], first, last) for name, first, last in doc["spans"].tolist() if name in number_of]
        for _, first, last in spans:
            tags[row, first] = 1
            tags[row, first + 1 : last + 1] = 2
        if not doc["complete"]:
            tag_weight[row] *= np.where(tags[row] > 0, 1.0, _UNLABELLED_TAG)
        stance[row, : len(doc["stance"])] = doc["stance"]
        count = len(alive)
        taken = {at for _, first, last in spans for at in range(first, last + 1)}
        # Mentions of facts whose property is not shown are no mentions now: the best counter-examples.
        idle = [(first, last) for name, first, last in doc["spans"].tolist() if name not in number_of]
        others = idle + _other_spans(doc, taken, rng)
        spans = spans[:_PLACES]
        for first, last in others[: _PLACES - len(spans)]:
            spans.append((count, first, last))
            count += 1
        places.append(spans)
        names_of.append(count)
        real.append(len(alive))
        for subject, number, target in stated:
            end = number_of[target] if target >= 0 else target
            facts.append((row, number_of[subject], end, choice.at[number]))
        for place, (name, _, _) in enumerate(spans):
            if name >= len(alive):
                continue
            told = {int(one) for one in doc["types"].get(alive[name], ())}
            for one in told & classes_at.keys():
                kinds.append((row, place, classes_at[one]))
            if told:
                unknown_kinds.append((row, place, told))
    names = max(1, *names_of) if names_of else 1
    width_places = max(1, *(len(spans) for spans in places)) if places else 1
    first, last = np.zeros((texts, width_places), np.int64), np.zeros((texts, width_places), np.int64)
    name_of = np.full((texts, width_places), names, np.int64)
    for row, spans in enumerate(places):
        for place, (name, start, end) in enumerate(spans):
            name_of[row, place], first[row, place], last[row, place] = name, start, end
    count = len(choice.properties)
    target = np.zeros((texts, names, names + 2, count), np.float32)
    weight = np.zeros_like(target)
    booleans = batch["is_boolean"].numpy()
    for row, doc in enumerate(documents):
        base = 1.0 if doc["complete"] else _UNLABELLED
        weight[row, : names_of[row], : names_of[row]] = base * ~booleans
        weight[row, : names_of[row], names:] = base * booleans
    weight[:, np.arange(names), np.arange(names)] = 0
    for row, subject, end, place in facts:
        column = names if end == TRUE else names + 1 if end == FALSE else end
        target[row, subject, column, place] = 1
        weight[row, subject, column, place] = 1
    kind_target = np.zeros((texts, width_places, len(choice.classes)), np.float32)
    kind_weight = np.zeros_like(kind_target)
    for row, place, told in unknown_kinds:
        related = told | {below for one in told for below in ontology["below"][one]}
        # Concepts of the benchmarks have no tree: `human` and `composer` may both be right.
        unsure = 1.0 if documents[row]["complete"] and documents[row]["source"] != "webnlg" else _UNLABELLED
        kind_weight[row, place] = [0.0 if number in related else unsure for number in choice.classes]
    for row, place, column in kinds:
        kind_target[row, place, column] = kind_weight[row, place, column] = 1
    arrays = {
        "tags": tags, "tag_weight": tag_weight, "stance": stance, "span_first": first, "span_last": last,
        "span_name": name_of, "target": target, "weight": weight, "kind_target": kind_target, "kind_weight": kind_weight,
    }  # fmt: skip
    batch |= {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
    batch["names"] = torch.tensor(names)
    return batch


class Batches(IterableDataset):
    """Batches without end. `shares` says how often each source is drawn; of a domain texts come round by round."""

    def __init__(
        self, documents: Sequence[dict], ontologies: dict, shares: dict[str, float], *, size: int, seed: int
    ) -> None:
        self._ontologies, self._size, self._seed = ontologies, size, seed
        self._texts: dict[str, list[dict]] = defaultdict(list)
        for doc in documents:
            self._texts[doc["ontology"]].append(doc)
        of_source: dict[str, list[str]] = defaultdict(list)
        for name in sorted(self._texts):
            of_source[name.split(":")[0]].append(name)
        self._names: list[str] = []
        self._weights: list[float] = []
        for source, names in sorted(of_source.items()):
            whole = sum(min(len(self._texts[name]), 400) for name in names)
            for name in names:
                self._names.append(name)
                self._weights.append(shares.get(source, 0.0) * min(len(self._texts[name]), 400) / whole)

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        info = torch.utils.data.get_worker_info()
        rng = random.Random(self._seed * 1009 + (info.id if info else 0))
        waiting: dict[str, list[dict]] = defaultdict(list)
        while True:
            name = rng.choices(self._names, self._weights)[0]
            if not waiting[name]:
                waiting[name] = rng.sample(self._texts[name], len(self._texts[name]))
            taken, waiting[name] = waiting[name][: self._size], waiting[name][self._size :]
            yield training_batch(self._ontologies[name], taken, rng)


def stream(dataset: Batches, *, workers: int, pin: bool) -> Iterator[dict[str, Tensor]]:
    """The batches, made by workers beside the training."""
    more = {"prefetch_factor": 8, "persistent_workers": True} if workers else {}
    return iter(DataLoader(dataset, batch_size=None, num_workers=workers, pin_memory=pin, **more))

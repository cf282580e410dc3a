"""What a network reads in texts it was not trained on, against complete gold: exact names and values, unfiltered."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np
import torch
from torch import Tensor

from training.batches import all_labels, label_tensors, text_tensors
from training.fitting import to_device
from training.house import decoding
from training.network import ReaderNetwork

_KEPT_FROM = 0.03
_DATES_AND_NUMBERS = frozenset(
    ("date", "dateTime", "gYear", "gYearMonth", "integer", "decimal", "double", "float", "int", "long",
     "nonNegativeInteger", "positiveInteger")
)  # fmt: skip


@torch.no_grad()
def read_documents(
    network: ReaderNetwork, documents: Sequence[dict], ontologies: dict, *, dtype: torch.dtype, size: int = 32
) -> list[dict]:
    """For each document its facts with scores, the mentions, and what the stance head says of each fact."""
    network.eval()
    device = next(network.parameters()).device
    of_ontology: dict[str, list[dict]] = defaultdict(list)
    for doc in documents:
        of_ontology[doc["ontology"]].append(doc)
    read = []
    for name, group in of_ontology.items():
        ontology = ontologies[name]
        labels = label_tensors(ontology, all_labels(ontology))
        for at in range(0, len(group), size):
            some = group[at : at + size]
            batch = to_device(labels | text_tensors(some), device)
            found = network(batch, dtype, rounded=True)
            tags = found["tags"].softmax(-1).cpu().numpy()
            spans = [
                decoding.find_mentions(tags[row], doc["starts"].tolist(), doc["ends"].tolist(), doc["text"])[:40]
                for row, doc in enumerate(some)
            ]
            scores, kinds = _score(network, found, batch, some, spans, device)
            stance = found["stance"].softmax(-1).cpu().numpy()
            for row, doc in enumerate(some):
                read.append(_decode(doc, ontology, spans[row], scores[row], kinds[row], stance[row]))
    return read


def _score(network, found, batch, documents, spans, device) -> tuple[np.ndarray, np.ndarray]:
    width = max(1, *(len(one) for one in spans)) if spans else 1
    names = [decoding.group_names(one, doc["text"]) for one, doc in zip(spans, documents, strict=True)]
    most = max(1, *(len(one[1]) for one in names))
    shape = (len(spans), width)
    first, last, name_of = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.full(shape, most, np.int64)
    for row, one in enumerate(spans):
        for place, span in enumerate(one):
            first[row, place], last[row, place], name_of[row, place] = span.first, span.last, names[row][0][place]
    more = {"span_first": first, "span_last": last, "span_name": name_of}
    batch = batch | {key: torch.from_numpy(value).to(device) for key, value in more.items()}
    batch["names"] = torch.tensor(most)
    scores, kinds = network.score(found, batch)
    return scores.sigmoid().cpu().numpy(), kinds.sigmoid().cpu().numpy()


def _decode(doc: dict, ontology: dict, spans: list, scores: np.ndarray, kinds: np.ndarray, stance: np.ndarray) -> dict:
    name_of, names = decoding.group_names(spans, doc["text"])
    most = scores.shape[0]
    place = {}
    for at, number in enumerate(name_of):
        place.setdefault(number, spans[at])
    facts = []
    for subject, target, number in np.argwhere(scores > _KEPT_FROM).tolist():
        score, datatype = float(scores[subject, target, number]), ontology["datatypes"][number]
        if subject >= len(names) or subject == target:
            continue
        if target >= most:
            if datatype != "boolean":
                continue
            said, end = ("true", "false")[target - most], place[subject]
        elif datatype == "boolean" or target >= len(names):
            continue
        else:
            end, said = place[target], names[target]
            if datatype in _DATES_AND_NUMBERS:
                value = decoding.value_of((end.start, end.end), doc["values"], datatype)
                if value is None:
                    continue
                said = value
        low, high = min(place[subject].first, end.first), max(place[subject].last, end.last)
        against = float(1 - stance[low : high + 1, 0].mean())
        facts.append([names[subject], ontology["properties"][number], said, round(score, 4), round(against, 3)])
    best = [int(kinds[name_of.index(number)].argmax()) if kinds.shape[-1] else -1 for number in range(len(names))]
    classes = [ontology["classes"][one] if one >= 0 else "" for one in best]
    return {
        "ontology": doc["ontology"], "text": doc["text"], "gold": doc["gold"], "facts": facts, "kinds": doc["kinds"],
        "language": doc["language"], "names": list(zip(names, classes, strict=True)),
    }  # fmt: skip


def _key(fact: Sequence) -> tuple[str, str, str]:
    target = str(fact[2]).casefold()
    if re.fullmatch(r"\d+(?:\.\d+)?", target):
        target = str(Decimal(target).normalize())
    return str(fact[0]).casefold(), str(fact[1]), target


def count(read: Sequence[dict], threshold: float, keep: Callable[[dict], bool] = lambda one: True) -> dict[str, float]:
    """Precision, recall and F1 at a threshold."""
    right = said = wanted = 0
    for one in read:
        if not keep(one):
            continue
        gold = {_key(fact) for fact in one["gold"]}
        stated = {_key(fact) for fact in one["facts"] if fact[3] >= threshold}
        right, said, wanted = right + len(gold & stated), said + len(stated), wanted + len(gold)
    precision, recall = right / max(1, said), right / max(1, wanted)
    f1 = 2 * precision * recall / max(1e-9, precision + recall)
    return {
        "precision": round(precision, 3),
        "recall": round(recall, 3),
        "f1": round(f1, 3),
        "stated": said,
        "gold": wanted,
    }


def best_threshold(read: Sequence[dict]) -> float:
    """The threshold of the best F1."""
    return max((at / 50 for at in range(3, 49)), key=lambda at: count(read, at)["f1"])


def threshold_for(read: Sequence[dict], precision: float) -> float:
    """The lowest threshold with such a precision; 0.98 if none has."""
    fitting = [at / 50 for at in range(3, 50) if count(read, at / 50)["precision"] >= precision]
    return min(fitting, default=0.98)


def calibration(read: Sequence[dict], threshold: float, temperature: float, offset: float) -> float:
    """The expected calibration error of stated facts, in ten bins."""
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for one in read:
        gold = {_key(fact) for fact in one["gold"]}
        for fact in one["facts"]:
            if fact[3] >= threshold:
                sure = calibrated(fact[3], temperature, offset)
                bins[min(9, int(sure * 10))].append((sure, _key(fact) in gold))
    total = sum(len(some) for some in bins.values())
    gaps = sum(abs(sum(sure - right for sure, right in some)) for some in bins.values())
    return round(gaps / max(1, total), 3)


def calibrated(score: float, temperature: float, offset: float) -> float:
    logit = math.log(max(score, 1e-6) / max(1 - score, 1e-6))
    return 1 / (1 + math.exp(-(logit / temperature + offset)))


def fit_calibration(read: Sequence[dict]) -> tuple[float, float]:
    """Temperature and offset that make scores probabilities, by logistic regression on what was read."""
    pairs = [
        (math.log(max(fact[3], 1e-6) / max(1 - fact[3], 1e-6)), float(_key(fact) in gold))
        for one in read
        for gold in ({_key(fact) for fact in one["gold"]},)
        for fact in one["facts"]
    ]
    if len(pairs) < 20:
        return 1.0, 0.0
    logits, right = (torch.tensor(column, dtype=torch.float64) for column in zip(*pairs, strict=True))
    values = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([values], max_iter=100)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits * values[0] + values[1], right)
        loss.backward()
        return loss

    optimizer.step(closure)
    slope, offset = values.detach().tolist()
    return (1 / slope, offset) if slope > 0.05 else (1.0, 0.0)


def report(read: Sequence[dict], threshold: float) -> dict:
    """Everything worth a line: all, by language, without facts, by domain."""
    told: dict = {"all": count(read, threshold)}
    for language in ("de", "fr", "es"):
        told[language] = count(read, threshold, lambda one, language=language: one["language"] == language)
    told["foreign"] = count(read, threshold, lambda one: one["language"] != "en")
    told["nofact"] = count(read, threshold, lambda one: not one["gold"])["stated"]
    for name in sorted({one["ontology"] for one in read}):
        told[name] = count(read, threshold, lambda one, name=name: one["ontology"] == name)["f1"]
    return told

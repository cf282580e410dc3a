"""One training run: builds the network from the bundle, trains it, says how well it reads.

python -m training.train BUNDLE_FOLDER --layers 24 --seconds 300 --export FOLDER
"""

import argparse
import json
import random
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from training import evaluate
from training.batches import Batches, stream, training_batch
from training.bundle import load_bundle, stack_layers
from training.export import export
from training.fitting import Schedule, fit
from training.house import packing
from training.network import MATRICES, TEXT_OFFSET, ReaderNetwork, Shape, round_bits

SHARES = {"corpus": 0.62, "own": 0.20, "tekgen": 0.10, "webnlg": 0.08}


@dataclass(frozen=True)
class Run:
    """Everything that decides a run."""

    layers: int = 24
    seconds: float = 60.0
    steps: int = 10**9
    size: int = 32
    rate: float = 2.5e-4
    head_rate: float = 8e-4
    dropout: float = 0.1
    seed: int = 17
    without: tuple[str, ...] = ()
    """Sources that are left out: tekgen, webnlg, stance, own."""
    name: str = "run"
    device: str = "cuda"
    workers: int = 3
    precision: str = ""
    """bfloat16 or float32; by default the former on a GPU and the latter elsewhere."""

    @property
    def embedding_bits(self) -> int:
        return 8 if self.layers <= 25 else 4

    @property
    def bits(self) -> int:
        """As many as 90 MB in all allow; beyond 25 layers the embeddings have to give way, too."""
        return 6 if self.layers <= 18 else 5 if self.layers <= 21 else 4

    @property
    def dtype(self) -> torch.dtype:
        told = self.precision or ("bfloat16" if self.device.startswith("cuda") else "float32")
        return torch.bfloat16 if told == "bfloat16" else torch.float32


def build_network(bundle: dict, run: Run) -> ReaderNetwork:
    torch.manual_seed(run.seed)
    embeddings = bundle["rows"].astype(np.float32) * bundle["scales"].astype(np.float32)
    if run.embedding_bits == 4:
        embeddings = packing.unpack(packing.pack(embeddings))
    stacked = stack_layers(bundle["layers"], run.layers)
    return ReaderNetwork(Shape(run.layers, bits=run.bits), stacked, embeddings, run.dropout).to(run.device)


def training_documents(bundle: dict, run: Run) -> list[dict]:
    return [
        doc
        for doc in bundle["documents"]
        if doc["split"] == "train"
        and doc["source"] not in run.without
        and doc["ontology"].split(":")[0] not in run.without
    ]


def train(bundle: dict, run: Run) -> tuple[ReaderNetwork, dict]:
    """A network trained as the run says, and what the last steps lost."""
    random.seed(run.seed)
    np.random.seed(run.seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    # Its attention under a mask was wrong in some releases.
    torch.backends.cuda.enable_cudnn_sdp(False)
    network = build_network(bundle, run)
    dataset = Batches(training_documents(bundle, run), bundle["ontologies"], SHARES, size=run.size, seed=run.seed)
    schedule = Schedule(run.seconds, run.steps, run.rate, run.head_rate)
    batches = stream(dataset, workers=run.workers, pin=run.device.startswith("cuda"))
    told = fit(network, batches, schedule, dtype=run.dtype, name=run.name)
    freeze_rounded(network)
    return network, told


def freeze_rounded(network: ReaderNetwork) -> None:
    """From here on the matrices are what few bits keep, so that every figure is the quantised network's."""
    with torch.no_grad():
        for name in MATRICES:
            weights = getattr(network.encoder, name)
            weights.copy_(round_bits(weights, network.shape.bits))


def judge(network: ReaderNetwork, bundle: dict, run: Run, split: str) -> list[dict]:
    documents = [doc for doc in bundle["documents"] if doc["split"] == split]
    return evaluate.read_documents(network, documents, bundle["ontologies"], dtype=run.dtype)


def settings_of(run: Run, network: ReaderNetwork, validation: list[dict]) -> dict:
    """What reading needs to know beside the weights."""
    temperature, offset = evaluate.fit_calibration(validation)
    return {
        "format": 1,
        **asdict(network.shape),
        "embedding_bits": run.embedding_bits,
        "text_offset": TEXT_OFFSET,
        "temperature": temperature,
        "offset": offset,
        "threshold": evaluate.best_threshold(validation),
        "threshold_80": evaluate.threshold_for(validation, 0.80),
        "threshold_85": evaluate.threshold_for(validation, 0.85),
    }


def few_shot(
    network: ReaderNetwork, bundle: dict, run: Run, *, seconds: float, top: int | None, steps: int = 50
) -> list[dict]:
    """What each development domain's documents give after its 30 examples were learnt, by all layers or the top ones."""
    kept = {name: one.detach().clone() for name, one in network.state_dict().items()}
    replay = [doc for doc in training_documents(bundle, run) if doc["ontology"].startswith(("corpus:", "own:"))]
    names = sorted({doc["ontology"] for doc in bundle["documents"] if doc["split"] == "examples"})
    read = []
    for name in names:
        network.load_state_dict(kept)
        examples = [doc for doc in bundle["documents"] if doc["split"] == "examples" and doc["ontology"] == name]
        others = iter(Batches(replay, bundle["ontologies"], {"corpus": 1.0, "own": 1.0}, size=12, seed=run.seed + 1))
        rng = random.Random(run.seed)

        def batches(examples=examples, others=others, rng=rng, name=name):
            while True:
                for start in range(0, len(examples), 15):
                    if start == 0:
                        rng.shuffle(examples)
                    yield training_batch(bundle["ontologies"][name], examples[start : start + 15], rng, thin=0.1)
                yield next(others)

        schedule = Schedule(seconds / len(names), steps, 8e-5, 3e-4, warm_up=0.1, rounded_from=0.3, decay=0.0)
        fit(network, batches(), schedule, dtype=run.dtype, name=f"{run.name} {name}", top=top)
        documents = [doc for doc in bundle["documents"] if doc["split"] == "documents" and doc["ontology"] == name]
        read += evaluate.read_documents(network, documents, bundle["ontologies"], dtype=run.dtype)
    network.load_state_dict(kept)
    return read


def short_report(bundle: dict, run: Run, network: ReaderNetwork, told: dict) -> tuple[dict, dict]:
    """One line for the table of ingredients, and the settings; the threshold is the validation's."""
    validation = judge(network, bundle, run, "validation")
    settings = settings_of(run, network, validation)
    line = {"name": run.name, "layers": run.layers, "without": run.without, **told, "threshold": settings["threshold"]}
    line["validation"] = evaluate.count(validation, settings["threshold"])
    line["validation_foreign"] = evaluate.report(validation, settings["threshold"])["foreign"]
    line["validation_nofact_stated"] = evaluate.report(validation, settings["threshold"])["nofact"]
    documents = judge(network, bundle, run, "documents")
    line["documents"] = evaluate.count(documents, settings["threshold"])
    return line, settings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--steps", type=int, default=10**9)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--rate", type=float, default=2.5e-4)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--without", nargs="*", default=())
    parser.add_argument("--name", default="run")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", default="")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--lines", type=Path, help="append one JSON line with the figures here")
    parser.add_argument("--export", type=Path)
    told = vars(parser.parse_args())
    folder, lines, target = told.pop("bundle"), told.pop("lines"), told.pop("export")
    began = time.monotonic()
    run = Run(**told | {"without": tuple(told["without"])})
    bundle = load_bundle(folder)
    print(f"[{run.name}] bundle loaded in {time.monotonic() - began:.0f} s", flush=True)
    network, losses = train(bundle, run)
    line, settings = short_report(bundle, run, network, losses)
    print(json.dumps(line), flush=True)
    if lines:
        with lines.open("a") as file:
            file.write(json.dumps(line) + "\n")
    if target:
        export(network, target, settings)


if __name__ == "__main__":
    main()

"""The whole training within a number of seconds on one GPU: a table of ingredients, then the final network.

    python -m training.device BUNDLE_FOLDER --out FOLDER --seconds 540 --table-seconds 170

Writes into FOLDER: log.txt, table.jsonl (one line for each short run), result.json (the final figures),
predictions.json.xz and reader-*.npz. A short run that fails is missing from the table and harms nothing else.
"""

import argparse
import json
import lzma
import os
import subprocess
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path

import torch

from training import evaluate
from training.bundle import load_bundle
from training.export import export
from training.train import Run, few_shot, judge, short_report, train

TABLE = {
    "12 layers": ["--layers", "12"],
    "18 layers": ["--layers", "18"],
    "21 layers": ["--layers", "21"],
    "24 layers": ["--layers", "24"],
    "30 layers": ["--layers", "30"],
    "18 without tekgen": ["--layers", "18", "--without", "tekgen"],
    "18 without webnlg": ["--layers", "18", "--without", "webnlg"],
    "18 without stance": ["--layers", "18", "--without", "stance"],
    "18 without own": ["--layers", "18", "--without", "own"],
}
# Deeper ones would read fewer than ten sentences a second on two cores, or be larger than 90 MB.
DEEPEST = 24
_WORTH = 0.01
_AFTER = 95.0
"""Seconds kept for reading, learning from examples and writing after the final training."""


class Log:
    """Prints, and keeps what it printed."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._began = time.monotonic()

    def __call__(self, *words: object) -> None:
        line = f"{time.monotonic() - self._began:6.1f} " + " ".join(str(word) for word in words)
        print(line, flush=True)
        self._file.write(line + "\n")
        self._file.flush()


def run_table(told: argparse.Namespace, lines: Path, log: Log) -> None:
    """All short runs at once: one alone leaves most of the GPU idle."""
    deadline = time.monotonic() + told.table_seconds
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    names = list(TABLE)[: told.variants]
    running = {}
    for at, name in enumerate(names):
        command = [sys.executable, "-m", "training.train", str(told.bundle), *TABLE[name], "--name", name]
        command += ["--seconds", str(max(2.0, told.table_seconds - told.table_margin)), "--device", told.device]
        command += ["--workers", str(told.table_workers), "--size", str(told.size), "--steps", str(told.table_steps)]
        command += ["--lines", str(lines)]
        output = (told.out / f".table-{at}.log").open("w")
        running[name] = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    while any(one.poll() is None for one in running.values()) and time.monotonic() < deadline:
        time.sleep(0.5)
    for at, (name, process) in enumerate(running.items()):
        late = process.poll() is None
        if late:
            process.kill()
            process.wait()
        path = told.out / f".table-{at}.log"
        said = path.read_text(errors="replace").strip().splitlines()
        path.unlink()
        log(
            f"table: {name}: {'too late' if late else f'exit {process.returncode}'}:",
            *said[-3 if not process.returncode else -12 :],
        )


def choose(lines: Path, log: Log) -> tuple[int, tuple[str, ...]]:
    """The depth and the sources that did best on validation."""
    rows = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    scores = {row["name"]: row["validation"]["f1"] for row in rows}
    log("table:", scores)
    depths = {row["layers"]: row["validation"]["f1"] for row in rows if not row["without"] and row["layers"] <= DEEPEST}
    # In a short run the deep ones have made fewer steps: a tie goes to them.
    layers = max(depths, key=lambda one: (depths[one] + _WORTH * one / 6, one), default=DEEPEST)
    plain = scores.get("18 layers", 1.0)
    without = tuple(
        source for source in ("tekgen", "webnlg") if scores.get(f"18 without {source}", 0.0) > plain + 2 * _WORTH
    )
    return layers, without


def run_final(told: argparse.Namespace, run: Run, lines: Path, log: Log, began: float) -> None:
    bundle = load_bundle(told.bundle)
    log("final:", run)
    network, losses = train(bundle, run)
    log("final: trained", losses)
    line, settings = short_report(bundle, run, network, losses)
    line["name"] = "final"
    log("final:", json.dumps(line))
    log("written:", *(path.name for path in export(network, told.out, settings)))
    with lines.open("a") as file:
        file.write(json.dumps(line) + "\n")
    result: dict = {
        "run": {"layers": run.layers, "without": run.without, "seed": run.seed, "steps": losses["steps"]},
        "settings": settings,
    }
    read = {split: judge(network, bundle, run, split) for split in ("validation", "documents")}
    for split, some in read.items():
        for name in ("threshold", "threshold_80", "threshold_85"):
            result[f"{split} at {name}"] = evaluate.report(some, settings[name])
        result[f"{split} calibration"] = evaluate.calibration(
            some, settings["threshold"], settings["temperature"], settings["offset"]
        )
    _keep(told.out, result, read)
    log(
        "zero:",
        json.dumps(
            {name: result[f"documents at {name}"]["all"] for name in ("threshold", "threshold_80", "threshold_85")}
        ),
    )
    for name, top in (("all layers", None), ("top 6 layers", 6), ("heads", 0)):
        left = told.seconds - (time.monotonic() - began) - 12
        if left < 6:
            log("few: no time for", name)
            break
        try:
            some = few_shot(network, bundle, run, seconds=min(24.0, left), top=top, steps=told.few_steps)
            read[f"few, {name}"] = some
            result[f"few, {name}"] = evaluate.report(some, settings["threshold"])
            result[f"few, {name}, at threshold_80"] = evaluate.report(some, settings["threshold_80"])
            log("few:", name, json.dumps(result[f"few, {name}"]["all"]))
            _keep(told.out, result, read)
        except Exception:
            log("few:", name, "failed", traceback.format_exc())


def _keep(out: Path, result: dict, read: dict) -> None:
    (out / "result.json").write_text(json.dumps(result, indent=1))
    with lzma.open(out / "predictions.json.xz", "wt", preset=1) as file:
        json.dump(read, file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--table-seconds", type=float, default=170)
    parser.add_argument("--table-margin", type=float, default=45, help="of these for loading and reading")
    parser.add_argument("--table-steps", type=int, default=10**9)
    parser.add_argument("--table-workers", type=int, default=1)
    parser.add_argument("--variants", type=int, default=len(TABLE))
    parser.add_argument("--layers", type=int, help="the final depth; without it the table decides")
    parser.add_argument("--steps", type=int, default=10**9, help="final steps, to repeat a run exactly")
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--few-steps", type=int, default=50)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", default="")
    parser.add_argument("--workers", type=int, default=6)
    told = parser.parse_args()
    began = time.monotonic()
    told.out.mkdir(parents=True, exist_ok=True)
    lines, log = told.out / "table.jsonl", Log(told.out / "log.txt")
    log("torch", torch.__version__, torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU")
    if told.table_seconds > 0:
        try:
            run_table(told, lines, log)
        except Exception:
            log("table failed", traceback.format_exc())
    layers, without = choose(lines, log)
    run = Run(
        layers=told.layers or layers, without=without, steps=told.steps, size=told.size, name="final",
        device=told.device, precision=told.precision, workers=told.workers,
        seconds=max(5.0, told.seconds - (time.monotonic() - began) - _AFTER),
    )  # fmt: skip
    try:
        run_final(told, run, lines, log, began)
    except Exception:
        log("final failed", traceback.format_exc())
        left = told.seconds - (time.monotonic() - began) - _AFTER
        if left < 60:
            raise
        # Once more, smaller, in what time is left: better than nothing.
        torch.cuda.empty_cache()
        run_final(told, replace(run, seconds=left, size=16, layers=min(run.layers, 18), rate=1.5e-4), lines, log, began)
    log("done")


if __name__ == "__main__":
    main()

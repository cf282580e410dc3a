"""Settings that only opening shows to be wrong: real commands end at once, in one line that says what to do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KEYS = json.dumps({"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "1"}]})
JWT = {"AUTH": "jwt", "JWT_ISSUER": "https://issuer", "JWT_AUDIENCE": "sameas"}
PRICED = 'as_of = 2026-01-01\n[models]\n"compatible:m" = { input = 1, output = 1 }\n'
# What is set, what is said about it, what is there before.
CASES = {
    "home-is-a-file": ({"HOME": "file"}, "SAMEAS_HOME: file: File exists", {"file": ""}),
    "home-below-a-file": ({"HOME": "file/home"}, "SAMEAS_HOME: file/home: Not a directory", {"file": ""}),
    "store-without-a-file": ({"STORE": "sqlite://"}, "SAMEAS_STORE: SQLite needs a file", {}),
    "store-with-options": ({"STORE": "sqlite:///a.db?x=1"}, "SAMEAS_STORE: a URL of SQLite has no options", {}),
    "database-in-memory": ({"DATABASE": "sqlite:///:memory:"}, "SAMEAS_DATABASE: SQLite needs a file", {}),
    "jwt-alone": ({"AUTH": "jwt"}, "auth by jwt needs SAMEAS_JWT_ISSUER", {}),
    "no-key-file": ({**JWT, "JWT_KEYS": "keys.json"}, "SAMEAS_JWT_KEYS: keys.json: No such file", {}),
    "key-folder": ({**JWT, "JWT_KEYS": "."}, "SAMEAS_JWT_KEYS: .: Is a directory", {}),
    "key-garbage": ({**JWT, "JWT_KEYS": "keys.json"}, "SAMEAS_JWT_KEYS: the key set is not JSON", {"keys.json": "{"}),
    "key-secret": ({**JWT, "JWT_KEYS": "keys.json"}, "SAMEAS_JWT_KEYS: the key set holds a secret", {"keys.json": KEYS}),
    "no-keys": ({**JWT, "JWT_KEYS": "keys.json"}, "SAMEAS_JWT_KEYS: the key set holds no key", {"keys.json": '{"keys":[]}'}),
    "short-secret": ({"AUTH": "api-key", "API_KEY_SECRET": "short"}, "SAMEAS_API_KEY_SECRET must have at least 16", {}),
    "all-addresses": ({"HOST": "0.0.0.0"}, "0.0.0.0", {}),
    "openai-without-a-key": ({"MODELS": "openai:gpt-5-mini"}, "SAMEAS_MODELS: openai:gpt-5-mini answers nobody", {}),
    "google-without-a-key": ({"MODELS": "google:gemini-2.5-pro"}, "GOOGLE_API_KEY or GEMINI_API_KEY", {}),
    "no-prices": ({"PRICES": "prices.toml"}, "SAMEAS_PRICES: prices.toml is no table of prices", {}),
    "bad-prices": ({"PRICES": "prices.toml"}, "It needs a date, as_of", {"prices.toml": "x = 1"}),
    "no-price-and-a-limit": (
        {"PRICES": "prices.toml", "MODELS": "http://localhost:1/v1#other", "REQUEST_COST": "5"},
        "SAMEAS_MODELS: the price of compatible:other is not known, and money is limited",
        {"prices.toml": PRICED},
    ),
    "archive-is-a-folder": ({"ARCHIVE": "."}, "SAMEAS_ARCHIVE: ", {}),
    "archive-in-no-folder": ({"ARCHIVE": "gone/old.jsonl"}, "must be a file in a folder that is there", {}),
}  # fmt: skip


def ended(command: str, folder: Path, **given: str) -> subprocess.CompletedProcess[str]:
    left_out = ("SAMEAS_", "OPENAI_", "ANTHROPIC_", "GOOGLE_", "GEMINI_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    environment |= {f"SAMEAS_{name}": value for name, value in {"PORT": "0", **given}.items()}
    words = [sys.executable, "-m", "sameas.cli", command]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("case", CASES)
def test_a_server_that_could_not_work_does_not_start(case: str, tmp_path: Path) -> None:
    given, said, files = CASES[case]
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    done = ended("serve", tmp_path, **given)
    assert (done.returncode, done.stdout) == (2, ""), done
    *log, last = done.stderr.splitlines()
    assert last.startswith("sameas: ")
    assert said in last
    assert "Traceback" not in done.stderr
    # Before it, at most the lines of a log.
    assert all(json.loads(line) for line in log)


@pytest.mark.parametrize("case", ["no-key-file", "openai-without-a-key", "no-prices", "home-is-a-file"])
def test_the_doctor_finds_what_a_start_would_be_refused_for(case: str, tmp_path: Path) -> None:
    given, _, files = CASES[case]
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    done = ended("doctor", tmp_path, **given)
    assert done.returncode == 5, done
    assert "Traceback" not in done.stderr
    assert "failed" in done.stdout


def test_the_doctor_says_what_money_limits_and_what_it_does_not(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICED)
    models = "http://localhost:1/v1#m,http://localhost:1/v1#unknown"
    done = ended("doctor", tmp_path, MODELS=models, PRICES="prices.toml")
    assert done.returncode == 0, done
    flat = " ".join(done.stdout.split())
    assert "request_cost 10 USD (models without a known price: tokens alone)" in flat
    assert "tenant_cost_per_day 100 USD" in flat
    assert "compatible:m ok" in flat
    assert "compatible:unknown warning" in flat

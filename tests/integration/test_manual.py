"""The manual: every page is found, every link leads somewhere, and `./run docs` would notice if not."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("docs", "src"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("mkdocs.yml", "ARCHITECTURE.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def build(project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=project,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_manual_builds_with_every_public_name_of_the_engine(project: Path) -> None:
    built = build(project)
    assert built.returncode == 0, built.stdout + built.stderr
    page = (project / ".cache" / "site" / "api.html").read_text("utf-8")
    assert "run_many" in page
    assert "OutcomeUnknown" in page
    assert (project / ".cache" / "site" / "search" / "search_index.json").is_file()


def test_a_link_that_leads_nowhere_fails_the_build(project: Path) -> None:
    with (project / "docs" / "stores.md").open("a", encoding="utf-8") as page:
        page.write("\n[nowhere](nowhere.md)\n")
    built = build(project)
    assert built.returncode != 0
    assert "nowhere.md" in built.stdout + built.stderr


def test_every_decision_is_in_the_list() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = (folder / "index.md").read_text("utf-8")
    assert [page.name for page in sorted(folder.glob("0*.md")) if f"({page.name})" not in listed] == []

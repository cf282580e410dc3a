"""Renew the locks from pyproject.toml: `./run lock [--upgrade]`. Without it, what is pinned stays as it is.

uv's own lock file would remember the pins, but it holds addresses of package indexes and is not committed.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UV = Path(sys.executable).with_name("uv")
EVERYTHING = ROOT / "requirements.lock"
PRODUCT = ROOT / "deploy" / "requirements.lock"
_PIN = re.compile(r"([A-Za-z0-9._-]+==[^ ;\\]+(?: ; [^\\]+)?)")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        pins = [] if "--upgrade" in sys.argv else [pin[1].rstrip() for pin in map(_PIN.match, _lines()) if pin]
        constraints = ",\n".join(f'"{pin}"' for pin in pins)
        # The reader's weights are of this repository, not of an index.
        described = (ROOT / "pyproject.toml").read_text("utf-8").replace(', "sameas-reader>=1"', "")
        (project / "pyproject.toml").write_text(
            described + f"\n[tool.uv]\nconstraint-dependencies = [\n{constraints}\n]\n"
        )
        for name in ("README.md", "LICENSE"):
            shutil.copy(ROOT / name, project)
        (project / "src" / "sameas").mkdir(parents=True)
        (project / "src" / "sameas" / "__init__.py").touch()
        _uv(project, "lock")
        export = ("export", "--format", "requirements-txt", "--no-emit-project", "--no-header")
        _uv(project, *export, "--all-extras", "--all-groups", "--output-file", str(EVERYTHING))
        extras = [word for extra in ("cluster",) for word in ("--extra", extra)]
        _uv(project, *export, "--no-default-groups", *extras, "--output-file", str(PRODUCT))


def _lines() -> list[str]:
    return EVERYTHING.read_text("utf-8").splitlines()


def _uv(project: Path, *arguments: str) -> None:
    subprocess.run([UV, "--quiet", *arguments], cwd=project, check=True)


if __name__ == "__main__":
    main()

"""The parser and the compiler, fetched by name and hash into a folder of their own.

Their dependencies conflict with the project's, so they are never installed beside it. .NET Core 3.1 wants the OpenSSL
of its time, which a wheel of that time carries.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LOCK = HERE / "requirements.lock"
FOLDER = HERE.parents[1] / ".cache" / "tsql"


class ToolsMissingError(RuntimeError):
    """The wheels could not be fetched or the libraries in them are not for this machine."""


def check(schema: list[str], batches: dict[str, Any]) -> dict[str, list[str]]:
    """The problems of each script, by name; empty where all is well."""
    folder = installed()
    task = {"folder": str(folder), "schema": schema, "batches": batches}
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "LD_LIBRARY_PATH": str(folder / "openssl"),
        "CLR_ICU_VERSION_OVERRIDE": _icu_version(),
        "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
    }
    done = subprocess.run(
        [sys.executable, str(HERE / "compiler.py")],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode != 0:
        problem = f"the compiler ended with {done.returncode}: {done.stderr.strip()}"
        raise RuntimeError(problem)
    problems: dict[str, list[str]] = json.loads(done.stdout)
    return problems


def installed() -> Path:
    """The folder with the wheels; they are fetched where this lock was not fetched yet."""
    mark = FOLDER / "requirements.lock"
    if mark.exists() and mark.read_bytes() == LOCK.read_bytes():
        return FOLDER
    shutil.rmtree(FOLDER, ignore_errors=True)
    words = ["install", "--quiet", "--no-deps", "--require-hashes", "--target", str(FOLDER), "-r", str(LOCK)]
    uv = shutil.which("uv")
    command = [uv, "pip", *words, "--python", sys.executable] if uv else [sys.executable, "-m", "pip", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolsMissingError(f"the T-SQL tools cannot be fetched: {done.stderr.strip()}")
    _lay_out_openssl()
    mark.write_bytes(LOCK.read_bytes())
    return FOLDER


def _lay_out_openssl() -> None:
    target = FOLDER / "openssl"
    target.mkdir()
    for library in (FOLDER / "psycopg2_binary.libs").iterdir():
        shutil.copy(library, target)
    (source,) = target.glob("libssl-*.so.1.1")
    (target / "libssl.so.1.1").symlink_to(source.name)


def _icu_version() -> str:
    """The version of the system's ICU, which .NET would otherwise look for among those of its own time."""
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"):
        found = sorted(Path(folder).glob("libicuuc.so.*.*"))
        if found:
            return found[-1].name.removeprefix("libicuuc.so.")
    raise ToolsMissingError("the compiler needs the system's ICU library: install libicu")

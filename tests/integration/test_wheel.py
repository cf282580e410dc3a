"""The built wheel is what people get: it holds every data file and works with the core dependencies alone."""

import subprocess
import sys
import zipfile
from importlib.metadata import files
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = ("msgspec", "rfc8785")

USE_IT = """
import sys
sys.path[:0] = sys.argv[1:3]
from sameas import Engine, IdempotentProcessor, open_store
engine = Engine(open_store(f"sqlite:///{sys.argv[3]}/records.db"))
assert engine.run(lambda ctx: {"a": 1}, scope="s", key="k") == {"a": 1}
assert engine.record(lambda ctx: None, scope="s", key="k").was_replay
assert IdempotentProcessor(len, store=open_store("memory://"), scope="s").process([1]).result == 1
third = {name.partition(".")[0] for name, module in sys.modules.items() if sys.argv[2] in str(getattr(module, "__file__", ""))}
print(*sorted(third))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("sameas-*.whl")
    return built


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    source = ROOT / "src"
    wanted = {
        str(path.relative_to(source))
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }
    assert wanted <= set(zipfile.ZipFile(wheel).namelist())


def test_the_wheel_works_with_the_core_dependencies_alone(wheel, tmp_path):
    unpacked, core = tmp_path / "wheel", tmp_path / "core"
    zipfile.ZipFile(wheel).extractall(unpacked)
    core.mkdir()
    for name in CORE:
        package = next(Path(str(file.locate())).parent for file in files(name) if file.name == "__init__.py")
        while package.name != name:
            package = package.parent
        (core / name).symlink_to(package)
    used = subprocess.run(
        [sys.executable, "-I", "-S", "-c", USE_IT, str(unpacked), str(core), str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert set(used.stdout.split()) == set(CORE)

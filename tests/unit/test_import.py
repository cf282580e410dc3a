"""`import sameas` is light: quick, and without any third-party module beyond the core ones."""

import subprocess
import sys

import pytest

# typing_extensions is what msgspec itself brings along where it is installed.
CORE = {"msgspec", "rfc8785", "typing_extensions"}

LOADED = """
import sys, time
before = set(sys.modules)
began = time.process_time()
import sameas
seconds = time.process_time() - began
third = {name.partition(".")[0] for name in set(sys.modules) - before
         if "site-packages" in str(getattr(sys.modules[name], "__file__", ""))}
print(seconds, *sorted(third - {"sameas"}))
"""


def load():
    seconds, *third = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    ).stdout.split()
    return float(seconds), third


def test_import_takes_under_150_ms_of_processor_time_and_only_the_core():
    loads = [load() for _ in range(5)]
    assert {name for _, third in loads for name in third} <= CORE
    assert min(seconds for seconds, _ in loads) < 0.150


@pytest.mark.parametrize(
    ("url", "package", "extra"),
    [
        ("redis://localhost", "redis", "redis"),
        ("postgresql+psycopg://localhost/a", "psycopg", "postgres"),
        ("mysql+pymysql://localhost/a", "sqlalchemy", "mysql"),
        ("mssql+mssqlpython://localhost/a", "sqlalchemy", "mssql"),
    ],
)
def test_a_store_whose_driver_is_missing_says_what_to_install(url, package, extra):
    code = f"import sys; sys.modules[{package!r}] = None; from sameas import open_store; open_store({url!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr.strip().splitlines()[-1].endswith(f"pip install 'sameas[{extra}]'")

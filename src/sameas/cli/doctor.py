"""`sameas doctor`: the settings in force, and whether everything that they name really works.

Rule: nothing is believed. The store is opened, and a key is claimed, read and released in it; the home folder is
written to. What is wrong comes with what to do; the exit code says whether anything is.
"""

from __future__ import annotations

import platform
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Literal, NamedTuple

import typer

from sameas.cli.errors import ExitCode, explain
from sameas.cli.tables import print_table
from sameas.settings import Settings, hide_password, load_settings
from sameas.settings_rules import SINGLE

Verdict = Literal["ok", "warning", "failed"]
_SCOPE = "sameas.doctor"
_LEASE = 10_000_000
_PACKAGES = (
    "msgspec", "pyoxigraph", "ahocorasick-rs", "rapidfuzz", "numpy", "scipy", "typer", "rich", "redis", "psycopg",
    "sqlalchemy", "pypdf", "python-docx", "pyshacl",
)  # fmt: skip
# As in deploy/alerts.yaml.
_REPLAYS = ("sameas_cache_hits_total", "sameas_execution_cache_hits_total")
_MANY_REPLAYS = 0.05
_FEW, _MANY = 100, 1000
_METRICS_SECONDS = 5.0
_METRICS_BYTES = 16 << 20
_LEVELS: dict[str, Verdict] = {"fine": "ok", "warning": "warning", "unknown": "warning", "refused": "failed"}


class Check(NamedTuple):
    """One thing that was tried."""

    name: str
    verdict: Verdict
    said: str


def command(
    *,
    metrics: Annotated[
        str | None, typer.Option(metavar="URL", help="Also judge the replay rates that a process shows there.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Print what is in force and try everything that is configured."""
    settings = load_settings()
    checks = [*_checks(settings), *(_replay_rates(metrics) if metrics is not None else ())]
    if json:
        import msgspec

        whole = {
            "settings": {name: {"value": value, "from": source} for name, value, source in settings.shown()},
            "versions": dict(_versions()),
            "checks": [check._asdict() for check in checks],
        }
        print(msgspec.json.encode(whole).decode())
    else:
        print_table(("setting", "value", "from"), settings.shown(), to=sys.stdout)
        print()
        print_table(("package", "version"), [*_versions()], to=sys.stdout)
        print()
        print_table(("check", "result", "what was seen"), checks, to=sys.stdout)
    raise typer.Exit(ExitCode.UNAVAILABLE if any(check.verdict == "failed" for check in checks) else ExitCode.OK)


def _versions() -> Iterator[tuple[str, str]]:
    import sqlite3

    from sameas import __version__

    yield "sameas", __version__
    yield "python", platform.python_version()
    yield "sqlite", sqlite3.sqlite_version
    for package in _PACKAGES:
        try:
            yield package, version(package)
        except PackageNotFoundError:
            yield package, "not installed"


def _checks(settings: Settings) -> Iterator[Check]:
    yield _home(settings)
    yield _store(settings)
    if settings.store_url.startswith("redis"):
        yield from _redis(settings)
    if settings.database:
        yield _database(settings)
    if settings.objects:
        yield _objects(settings)
    if settings.auth != SINGLE or settings.host != Settings().host:
        yield _sign_in(settings)
    if settings.models or settings.prices or settings.extractor == "reader" or settings.archive:
        yield from _start(settings)


def _home(settings: Settings) -> Check:
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=settings.home, prefix=".sameas-doctor-") as file:
            file.write(b"written")
    except OSError as error:
        return Check("home", "failed", f"{explain(error)[0]}, or set SAMEAS_HOME")
    return Check("home", "ok", f"{settings.home.resolve()} can be written")


def _store(settings: Settings) -> Check:
    from sameas.connections import open_store
    from sameas.identity.ids import uuid7
    from sameas.once.call_builder import identity_of
    from sameas.once.record import Accepted, Acquired, ClaimRequest, Lease

    where = hide_password(settings.store_url)
    attempt = str(uuid7())
    identity = identity_of(_SCOPE, attempt)
    try:
        with open_store(settings.store_url) as store:
            claim = store.claim(ClaimRequest(identity, "", attempt, _LEASE, _LEASE))
            if not isinstance(claim, Acquired):
                return Check("store", "failed", f"{where} gave a new key to somebody else: {type(claim).__name__}")
            seen = store.read(identity)
            released = store.release(Lease(identity, claim.fence, attempt))
    except Exception as error:
        return Check("store", "failed", f"{where}: {_plainly(error)}")
    if seen is None or not isinstance(released, Accepted):
        return Check("store", "failed", f"{where} does not keep what it was given")
    return Check("store", "ok", f"{where}: a key was claimed, read and released")


def _redis(settings: Settings) -> Iterator[Check]:
    from sameas.stores.redis import health

    try:
        for finding in health(settings.store_url):
            yield Check(f"redis {finding.subject}", _LEVELS[finding.level], finding.message)
    except Exception as error:
        yield Check("redis", "failed", _plainly(error))


def _database(settings: Settings) -> Check:
    from sameas.extraction.runs.results import ResultTables

    where = hide_password(settings.database)
    try:
        ResultTables(settings.database, tenant=settings.tenant).keys("sha256-")
    except Exception as error:
        return Check("database", "failed", f"{where}: {_plainly(error)}")
    return Check("database", "ok", f"{where}: the tables of results are there")


def _objects(settings: Settings) -> Check:
    from sameas.identity.ids import uuid7
    from sameas.objects import open_objects

    where, name = hide_password(settings.objects), f".sameas-doctor-{uuid7()}"
    try:
        objects = open_objects(settings.objects)
        objects.put(name, b"written")
        seen = objects.get(name)
        objects.delete([name])
    except Exception as error:
        return Check("objects", "failed", f"{where}: {_plainly(error)}")
    if seen != b"written":
        return Check("objects", "failed", f"{where} does not keep what it was given")
    return Check("objects", "ok", f"{where}: an object was written, read and deleted")


def _sign_in(settings: Settings) -> Check:
    try:
        from sameas.server.app import open_entry

        open_entry(settings).close()
    except Exception as error:
        return Check("sign-in", "failed", _plainly(error))
    return Check("sign-in", "ok", f"{settings.auth}: what it needs is there")


def _start(settings: Settings) -> Iterator[Check]:
    """What a server looks at before it starts."""
    try:
        from sameas.server.runs.models import Models
        from sameas.server.start_checks import check_start

        check_start(settings, asks_models=not settings.broker)
        models = Models(settings)
    except Exception as error:
        yield Check("start", "failed", _plainly(error))
        return
    for name in models.names:
        if name in models.without_price:
            said = "its price is not known: tokens alone limit what it may take; SAMEAS_PRICES names a file of prices"
            yield Check(f"model {name}", "warning", said)
        else:
            yield Check(f"model {name}", "ok", "its price is known, and what it may cost is limited")
    yield Check("start", "ok", "models, prices and files of the settings are there")


def _replay_rates(url: str) -> Iterator[Check]:
    """Source document 002: above 5 % somebody retries too hard; none at all among many calls, and the key is wrong."""
    try:
        totals = _totals(url)
    except (OSError, ValueError) as error:
        yield Check("replay rate", "failed", f"{url}: {_plainly(error)}")
        return
    for scope, calls in sorted(totals["sameas_calls_total"].items()):
        replays = sum(totals[name].get(scope, 0.0) for name in _REPLAYS)
        said = f"{replays:.0f} of {calls:.0f} calls"
        # What was extracted once is meant to be asked for again.
        if scope != "extraction" and calls >= _FEW and replays / calls > _MANY_REPLAYS:
            yield Check(f"replay rate {scope}", "warning", f"{said}: clients or the broker retry too hard")
        elif scope != "extraction" and calls >= _MANY and not replays:
            yield Check(f"replay rate {scope}", "warning", f"{said}: does the key hold something that always differs?")
        else:
            yield Check(f"replay rate {scope}", "ok", said)


def _totals(url: str) -> dict[str, dict[str, float]]:
    """The counters of a page of metrics, by scope."""
    from urllib.request import urlopen

    from prometheus_client.parser import text_string_to_metric_families

    if not url.startswith(("http://", "https://")):
        raise ValueError("an address of metrics begins with http:// or https://")
    with urlopen(url, timeout=_METRICS_SECONDS) as answer:  # noqa: S310
        page = answer.read(_METRICS_BYTES).decode()
    totals: dict[str, dict[str, float]] = {"sameas_calls_total": {}, **{name: {} for name in _REPLAYS}}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name in totals:
                totals[sample.name][sample.labels.get("scope", "")] = sample.value
    return totals


def _plainly(error: Exception) -> str:
    """The error in one line, without a hint at tracebacks that nobody needs here."""
    if isinstance(error, ModuleNotFoundError):
        return explain(error)[0]
    return " ".join(str(error).split()) or type(error).__name__

"""What is set, and where: the one place that reads the environment.

`SAMEAS_*` variables win over `sameas.toml` in the current folder, which wins over the defaults. A name that is not
known, or a value that cannot be, is an error that says where it was set. Plain msgspec and tomllib: pydantic-settings
alone would take longer to load than a whole replay may.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from errno import EACCES
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from sameas.identity.errors import SameasError
from sameas.once.errors import StoreMisconfigured
from sameas.settings_rules import fault, read_timeouts, wanted

if TYPE_CHECKING:
    from sameas.once.rollout import Rollout

FILE = "sameas.toml"
PREFIX = "SAMEAS_"
Source = Literal["environment", "file", "default"]
# What a run, and the runs of a tenant in a day, may cost on models unless somebody says otherwise.
DEFAULT_REQUEST_COST = 10.0
DEFAULT_TENANT_COST = 100.0
_LONGEST_SHOWN = 120
_CORRECT = "Correct it; `sameas doctor` tries what is set"
_SECRET = re.compile(r"(?<=://)([^/@:]*):([^/@]*)@")
# Set for the tests of this project and for other programs; not a setting.
_NOT_SETTINGS = (f"{PREFIX}TEST_", f"{PREFIX}API_KEY", f"{PREFIX}SERVICE_")
# NIST SP 800-107: a key of an HMAC has at least 112 bits.
_SECRET_BYTES = 16
# Where people keep their keys already. A key is never a setting: settings are printed.
_API_KEYS: Mapping[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "ollama": ("OLLAMA_API_KEY",),
    # A server of one's own is never sent the key of somebody else's.
    "compatible": (f"{PREFIX}API_KEY",),
}


class SettingsError(SameasError, ValueError):
    """A setting cannot be used."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting. `store` and `database` are URLs; an empty `store` stands for the file in `home`."""

    home: Path = Path()
    store: str = ""
    database: str = ""
    objects: str = ""
    broker: str = ""
    events: str = ""
    tenant: str = ""
    base: str = "urn:sameas:"
    concurrency: int = 4
    extractor: Literal["", "reader", "lexicon"] = ""
    min_confidence: float | None = None
    prices: str = ""
    host: str = "127.0.0.1"
    port: int = 8080
    metrics_port: int = 0
    worker_name: str = ""
    auth: str = "single-tenant"
    allow_remote: bool = False
    jwt_issuer: str = ""
    jwt_audience: str = ""
    jwt_keys: str = ""
    cors_origins: str = ""
    lease: float = 30.0
    grace: float = 20.0
    max_body: int = 16 * 1024 * 1024
    max_bodies: int = 512 * 1024 * 1024
    max_requests: int = 2_000
    max_runs: int = 16
    chunks_per_task: int = 16
    max_streams: int = 1_000
    models: str = ""
    model_requests_per_minute: int = 50
    model_tokens_per_minute: int = 100_000
    model_concurrency: int = 5
    request_tokens: int = 5_000_000
    request_cost: float | None = None
    """In US dollars; None is `DEFAULT_REQUEST_COST`, for models whose price is known."""
    tenant_tokens_per_day: int = 50_000_000
    tenant_cost_per_day: float | None = None
    """In US dollars; None is `DEFAULT_TENANT_COST`, for models whose price is known."""
    stage_timeouts: str = ""
    deadline: float = 0.0
    result_ttl: float = 7 * 86_400.0
    key_ttl: float = 86_400.0
    query_seconds: float = 10.0
    query_rows: int = 10_000
    mode: str = "enforce"
    archive: str = ""
    sources: Mapping[str, Source] = {}

    def __post_init__(self) -> None:
        for name in NAMES:
            said = fault(name, getattr(self, name))
            if said is not None:
                raise ValueError(f"{name} must be {said}")
        if self.max_bodies < self.max_body:
            raise ValueError("max_bodies must be at least max_body: it is for all bodies together")
        if min(self.result_ttl, self.key_ttl) < self.lease:
            raise ValueError("result_ttl and key_ttl must not be shorter than lease")
        if self.archive and self.store.partition("://")[0].startswith("redis"):
            raise ValueError("archive needs a store that keeps what has expired until it is removed; Redis does not")

    def check_together(self) -> None:
        """Raise where settings do not fit each other that fit alone."""
        if not self.broker:
            return
        if not self.objects:
            raise ValueError("broker needs objects, where every machine finds what is accepted: s3://bucket/prefix")
        if self.store.partition("://")[0].partition("+")[0] not in ("redis", "rediss", "postgresql", "postgres"):
            raise ValueError("broker needs a store that every machine sees: redis:// or postgresql+psycopg://")
        if self.database.partition("://")[0].partition("+")[0] not in ("postgresql", "postgres"):
            raise ValueError("broker needs a database that every machine sees: postgresql+psycopg://")

    @property
    def events_url(self) -> str:
        """Where live events go: what is set, or the store if that is Redis; empty if there is none."""
        return self.events or (self.store if self.store.startswith(("redis://", "rediss://")) else "")

    @property
    def most_cost_of_request(self) -> Decimal | None:
        """What a run may cost in US dollars; None where nobody limits it."""
        return _dollars(self.request_cost, DEFAULT_REQUEST_COST)

    @property
    def most_cost_of_day(self) -> Decimal | None:
        """What a tenant's runs of a day may cost in US dollars; None where nobody limits it."""
        return _dollars(self.tenant_cost_per_day, DEFAULT_TENANT_COST)

    @property
    def needs_prices(self) -> bool:
        """Whether somebody set a limit in money: then no model may be asked whose price is not known."""
        return bool(self.request_cost or self.tenant_cost_per_day)

    def timeouts(self) -> dict[str, tuple[int, int]]:
        """The soft and hard limits of stages that were set, in milliseconds."""
        return read_timeouts(self.stage_timeouts) or {}

    def rollout(self) -> Rollout:
        """For which keys idempotency is in force."""
        from sameas.once.rollout import parse_rollout

        return parse_rollout(self.mode)

    @property
    def store_url(self) -> str:
        """Where records live: what is set, or a SQLite file in the home folder."""
        return self.store or f"sqlite:///{self.home / 'sameas.db'}"

    @property
    def tenants_url(self) -> str:
        """Where tenants, cases and API keys live: the database, or a SQLite file in the home folder."""
        return self.database or f"sqlite:///{self.home / 'tenants.db'}"

    @property
    def counts_url(self) -> str:
        """Where the hourly counts live: the database, or a SQLite file in the home folder."""
        return self.database or f"sqlite:///{self.home / 'counts.db'}"

    @property
    def cache(self) -> Path:
        return self.home / "cache"

    @property
    def archive_path(self) -> Path | None:
        """The file to which expired records are appended before they are removed; beneath home, unless absolute."""
        return self.home / self.archive if self.archive else None

    @property
    def ontologies(self) -> Path:
        return self.home / "ontologies"

    def shown(self) -> list[tuple[str, str, str]]:
        """Name, value and source of each setting, without passwords."""
        values = {
            "home": str(self.home.resolve()),
            "store": hide_password(self.store_url),
            "database": hide_password(self.database) or "(none: runs are folders only)",
            "objects": hide_password(self.objects) or "(none: runs are folders under home)",
            "broker": hide_password(self.broker) or "(none: the service does the work itself)",
            "events": hide_password(self.events_url if self.broker else "") or "(none: events are read from journals)",
            "tenant": self.tenant or "(one, without a name)",
            "base": self.base,
            "concurrency": str(self.concurrency),
            "extractor": self.extractor or "(the best that is there)",
            "min_confidence": "(as suits the extractor)" if self.min_confidence is None else f"{self.min_confidence:g}",
            "prices": self.prices or "(the table that comes along)",
            "host": self.host,
            "port": str(self.port),
            "worker_name": self.worker_name or "(sameas-PID)",
            "metrics_port": str(self.metrics_port) if self.metrics_port else "(none: workers show no metrics)",
            "auth": self.auth,
            "allow_remote": "yes" if self.allow_remote else "no",
            "jwt_issuer": self.jwt_issuer or "(none)",
            "jwt_audience": self.jwt_audience or "(none)",
            "jwt_keys": hide_password(self.jwt_keys) or "(none)",
            "cors_origins": self.cors_origins or "(none)",
            "lease": f"{self.lease:g} s",
            "grace": f"{self.grace:g} s",
            "max_body": str(self.max_body),
            "max_bodies": str(self.max_bodies),
            "max_requests": str(self.max_requests),
            "max_runs": str(self.max_runs),
            "chunks_per_task": str(self.chunks_per_task) if self.chunks_per_task else "(runs are not divided)",
            "max_streams": str(self.max_streams),
            "models": self.models or "(none)",
            "model_requests_per_minute": str(self.model_requests_per_minute),
            "model_tokens_per_minute": str(self.model_tokens_per_minute),
            "model_concurrency": str(self.model_concurrency),
            "request_tokens": str(self.request_tokens),
            "request_cost": _shown_dollars(self.request_cost, DEFAULT_REQUEST_COST),
            "tenant_tokens_per_day": str(self.tenant_tokens_per_day),
            "tenant_cost_per_day": _shown_dollars(self.tenant_cost_per_day, DEFAULT_TENANT_COST),
            "stage_timeouts": self.stage_timeouts or "(the usual ones)",
            "deadline": f"{self.deadline:g} s" if self.deadline else "(none)",
            "result_ttl": f"{self.result_ttl:g} s",
            "key_ttl": f"{self.key_ttl:g} s",
            "query_seconds": f"{self.query_seconds:g} s",
            "query_rows": str(self.query_rows),
            "mode": self.mode,
            "archive": self.archive or "(none: what has expired is removed)",
        }
        return [(name, value, self.sources.get(name, "default")) for name, value in values.items()]


NAMES = tuple(name for name in Settings.__struct_fields__ if name != "sources")
_KINDS = {field.name: field.type for field in msgspec.structs.fields(Settings)}


def _dollars(given: float | None, usual: float) -> Decimal | None:
    chosen = usual if given is None else given
    return Decimal(str(chosen)) if chosen else None


def _shown_dollars(given: float | None, usual: float) -> str:
    if given is None:
        return f"{usual:g} USD (models without a known price: tokens alone)"
    return f"{given:g} USD" if given else "(no limit)"


def load_settings(environment: Mapping[str, str] | None = None, *, folder: Path | None = None) -> Settings:
    """The settings in force for a folder and an environment: by default those of this process."""
    given = os.environ if environment is None else environment
    file = (folder or Path()) / FILE
    values: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for name, value in _from_file(file).items():
        values[name], sources[name] = value, "file"
    for variable, text in given.items():
        if variable.startswith(PREFIX) and not variable.startswith(_NOT_SETTINGS):
            name = variable.removeprefix(PREFIX).lower()
            if name not in NAMES:
                raise SettingsError(f"{variable} is not a setting: the settings are {_listed(PREFIX)}. Unset it")
            if text:
                values[name], sources[name] = text, "environment"

    def where(name: str) -> str:
        return f"{PREFIX}{name.upper()}" if sources[name] == "environment" else f"{file}, {name}"

    for name, value in values.items():
        _check(name, value, where=where(name))
    try:
        settings = _convert({**values, "sources": sources})
        settings.check_together()
        return settings
    except ValueError as error:
        # What fits alone and not together.
        said = str(error).partition(" - at ")[0]
        found = [f"{where(name)} is {_found(values[name])}" for name in re.findall(r"[a-z_]+", said) if name in values]
        raise SettingsError(f"the settings do not fit together: {said}; {', '.join(dict.fromkeys(found))}") from error


def _from_file(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as content:
            values = tomllib.load(content)
    except FileNotFoundError:
        return {}
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} cannot be read: {error}. Correct it or take it away") from error
    unknown = sorted(values.keys() - set(NAMES))
    if unknown:
        raise SettingsError(f"{file}: {unknown[0]!r} is not a setting: the settings are {_listed('')}")
    return values


def _convert(values: Mapping[str, Any]) -> Settings:
    return msgspec.convert(values, Settings, strict=False, dec_hook=_path)


def _path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        try:
            return Path(value).expanduser()
        except RuntimeError as error:
            raise ValueError(str(error)) from error
    raise ValueError(f"a {kind.__name__} is wanted")


def _check(name: str, value: Any, *, where: str) -> None:
    try:
        said = fault(name, msgspec.convert(value, _KINDS[name], strict=False, dec_hook=_path))
    except msgspec.ValidationError:
        said = wanted(name, _KINDS[name])
    if said is not None:
        raise SettingsError(f"{where}: {name} must be {said}; it is {_found(value)}")


def _found(value: Any) -> str:
    found = repr(hide_password(str(value)))
    return found if len(found) <= _LONGEST_SHOWN else f"{found[:_LONGEST_SHOWN]}..."


def _listed(prefix: str) -> str:
    return ", ".join(f"{prefix}{name.upper() if prefix else name}" for name in NAMES)


@contextmanager
def naming(name: str, *, todo: str = _CORRECT) -> Iterator[None]:
    """Whoever opens what a setting names says which it was, where it cannot be opened, and what is to be done."""
    try:
        yield
    except SettingsError:
        raise
    except (ValueError, StoreMisconfigured) as error:
        raise SettingsError(f"{PREFIX}{name}: {hide_password(str(error)).rstrip('.')}. {todo}") from error
    except OSError as error:
        raise SettingsError(f"{PREFIX}{name}: {error.filename or 'it'}: {error.strerror or error}. {todo}") from error


def make_home(settings: Settings) -> None:
    """Make the folder in which everything lies that has no other place."""
    with naming("HOME", todo="Name a folder that can be written to"):
        settings.home.mkdir(parents=True, exist_ok=True)
        if not os.access(settings.home, os.W_OK | os.X_OK):
            raise PermissionError(EACCES, os.strerror(EACCES), str(settings.home))


def api_key_for(provider: str, environment: Mapping[str, str] | None = None) -> str | None:
    """The key of a provider of models, from its usual variable."""
    given = os.environ if environment is None else environment
    return next((key for name in api_key_names(provider) if (key := given.get(name))), None)


def api_key_names(provider: str) -> tuple[str, ...]:
    """The variables that a provider's key may be in."""
    return _API_KEYS.get(provider, ())


def service_credentials(environment: Mapping[str, str] | None = None) -> tuple[str | None, str | None]:
    """The bearer token and the API key for a service elsewhere."""
    given = os.environ if environment is None else environment
    token, api_key = given.get(f"{PREFIX}SERVICE_TOKEN") or None, given.get(f"{PREFIX}SERVICE_KEY") or None
    if token is not None and api_key is not None:
        raise SettingsError(f"{PREFIX}SERVICE_TOKEN and {PREFIX}SERVICE_KEY are both set. Unset one")
    return token, api_key


def bolt_credentials(environment: Mapping[str, str] | None = None) -> tuple[str, str]:
    """The user and the password of a graph database that collections are published to."""
    given = os.environ if environment is None else environment
    return given.get(f"{PREFIX}SERVICE_BOLT_USER", ""), given.get(f"{PREFIX}SERVICE_BOLT_PASSWORD", "")


def api_key_secret(environment: Mapping[str, str] | None = None) -> bytes:
    """What the digests of API keys are keyed with; empty where the deployment has none."""
    given = os.environ if environment is None else environment
    name = f"{PREFIX}API_KEY_SECRET"
    secret = os.fsencode(given.get(name, ""))
    if secret and len(secret) < _SECRET_BYTES:
        raise SettingsError(f"{name} must have at least {_SECRET_BYTES} characters, and be the same everywhere")
    return secret


def hide_password(url: str) -> str:
    """A URL without the password in it."""
    return _SECRET.sub(r"\1:***@", url)

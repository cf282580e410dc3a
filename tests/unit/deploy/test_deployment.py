"""The deployment files say what is true of the house, as far as that shows without an engine to run them."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sameas.settings import NAMES, PREFIX, load_settings

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
UNIT = (DEPLOY / "sameas.service").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
HASHED = re.compile(
    r"^([a-z0-9][a-z0-9._-]*(?:\[[^\]]*\])?)==([^ ;\\]+)(.*?)(?=^[a-z0-9]|\Z)", re.MULTILINE | re.DOTALL
)


def instructions(text: str) -> list[tuple[str, str]]:
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in joined.splitlines() if line.strip()]


def locked(path: Path) -> dict[tuple[str, str], frozenset[str]]:
    return {
        (name, version): frozenset(re.findall(r"sha256:[0-9a-f]{64}", rest))
        for name, version, rest in HASHED.findall(path.read_text())
    }


def test_the_image_has_two_stages_and_the_last_runs_without_rights() -> None:
    lines = instructions(DOCKERFILE)
    stages = [place for place, (word, _) in enumerate(lines) if word == "FROM"]
    assert len(stages) == 2
    last = lines[stages[-1] :]
    assert ("USER", "10001:10001") in last
    user = last.index(("USER", "10001:10001"))
    assert not any(word in ("RUN", "COPY", "ADD") for word, _ in last[user:])
    assert any(word == "COPY" and "--from=build" in rest for word, rest in last)


def test_every_image_is_named_with_a_version() -> None:
    images = [rest.split()[0] for word, rest in instructions(DOCKERFILE) if word == "FROM"]
    images += [service["image"] for service in COMPOSE["services"].values() if "build" not in service]
    assert images
    assert all(re.search(r":\d[\w.-]*$", image) for image in images)


def test_what_the_image_copies_is_there() -> None:
    copied = [rest.split()[0] for word, rest in instructions(DOCKERFILE) if word == "COPY" and "--from" not in rest]
    assert copied
    assert all((ROOT / path).exists() for path in copied)


def test_the_image_installs_a_part_of_the_same_lock() -> None:
    whole, part = locked(ROOT / "requirements.lock"), locked(DEPLOY / "requirements.lock")
    assert {name for name, _ in part} >= {
        "starlette",
        "uvicorn",
        "redis",
        "psycopg",
        "pyjwt",
        "pydantic-ai-slim",
        "msgspec",
    }
    assert not {name for name, _ in part} & {"pytest", "django", "spacy", "mypy"}
    missing = {each: hashes for each, hashes in part.items() if not hashes or whole.get(each) != hashes}
    assert not missing


def test_every_setting_of_the_files_is_a_setting() -> None:
    named = set(re.findall(rf"{PREFIX}([A-Z_]+)", DOCKERFILE + UNIT + (DEPLOY / "compose.yaml").read_text()))
    # The last is no setting: settings are printed.
    named -= {"NAME", "API_KEY_SECRET"}
    assert named
    assert {name.lower() for name in named} <= {*NAMES}


@pytest.mark.parametrize("service", ["api", "worker"])
def test_the_settings_of_compose_can_be_in_force(service: str, tmp_path: Path) -> None:
    given = COMPOSE["services"][service]["environment"]
    filled = {name: re.sub(r"\$\{[^}]*\}", "secret", value) for name, value in given.items()}
    filled["SAMEAS_OBJECTS"] = "s3://bucket/prefix"
    settings = load_settings({**filled, "SAMEAS_HOME": "/data"}, folder=tmp_path)
    assert settings.store_url == "redis://:secret@redis:6379/0"
    assert settings.database == "postgresql+psycopg://sameas:secret@postgres:5432/sameas"
    assert settings.auth == "api-key"
    assert settings.grace < int(COMPOSE["services"][service]["stop_grace_period"].removesuffix("s"))


def test_no_password_stands_in_a_file_and_none_is_optional() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    asked = re.findall(r"\$\{(\w+)([^}]*)\}", text)
    assert {name for name, _ in asked} == {
        "POSTGRES_PASSWORD",
        "REDIS_PASSWORD",
        "RABBITMQ_PASSWORD",
        "SAMEAS_API_KEY_SECRET",
        "SAMEAS_OBJECTS",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_REGION",
        "AWS_ENDPOINT_URL",
    }
    assert all(rest.startswith(":?") for _, rest in asked)


def test_containers_of_the_service_cannot_write_their_root_and_have_no_capabilities() -> None:
    for name in ("api", "worker"):
        service = COMPOSE["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        # No folder is shared: what counts is in the stores.
        assert "volumes" not in service
        assert any(mount.startswith("/data:") for mount in service["tmpfs"])


def test_redis_evicts_nothing_and_syncs_every_write() -> None:
    command = COMPOSE["services"]["redis"]["command"]
    assert "--appendfsync always" in command
    assert "--maxmemory-policy noeviction" in command


def test_volumes_and_dependencies_are_declared() -> None:
    services = COMPOSE["services"]
    assert set(services) == {"api", "worker", "redis", "postgres", "rabbitmq"}
    used = {volume.partition(":")[0] for service in services.values() for volume in service.get("volumes", [])}
    assert used == set(COMPOSE["volumes"])
    needed = {name for service in services.values() for name in service.get("depends_on", {})}
    assert needed <= set(services)
    assert all("healthcheck" in services[name] for name in needed)


def test_commands_of_the_files_are_commands_of_the_command_line() -> None:
    from sameas.cli.entry import main

    commands = {tuple(COMPOSE["services"][name]["command"]) for name in ("api", "worker")}
    assert commands == {("serve",), ("worker",)}
    for (command,) in commands:
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    here = re.sub(r"^ExecStart=.*$", "ExecStart=/bin/true", UNIT, flags=re.MULTILINE)
    (tmp_path / "sameas.service").write_text(here)
    answer = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "sameas.service")],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    said = [line for line in answer.stderr.splitlines() if "sameas.service" in line]
    assert (answer.returncode, said) == (0, []), answer.stderr


def test_systemd_waits_longer_than_the_grace_time() -> None:
    stop = re.search(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)
    assert stop is not None
    assert int(stop[1]) > load_settings({}).grace

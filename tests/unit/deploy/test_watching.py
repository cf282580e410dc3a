"""Boards, rules and autoscalers name metrics that the service shows."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from sameas.client import Client
from tests.unit.deploy.promised import METRICS, QUEUES
from tests.unit.server.house import TEXT, running, with_company

ROOT = Path(__file__).resolve().parents[3]
RULES = ROOT / "deploy" / "alerts.yaml"
BOARD: dict[str, Any] = json.loads((ROOT / "deploy" / "grafana" / "sameas.json").read_text("utf-8"))
ADAPTER = ROOT / "deploy" / "kubernetes" / "metrics-adapter.yaml"
NAME = re.compile(r"\bsameas_[a-z_]+")
TYPE = re.compile(r"^# TYPE (\w+) (\w+)$", re.MULTILINE)
# A counter may also be shown with the time of its first count.
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Every name of a service that has done some work."""
    import urllib.request

    home = with_company(tmp_path_factory.mktemp("home"))
    with running(home) as service:
        with Client(service.url) as client:
            client.extract(TEXT, ontology="company")
        with urllib.request.urlopen(f"{service.url}/metrics", timeout=30) as answer:
            text = answer.read().decode()
    return {f"{name}{suffix}" for name, kind in TYPE.findall(text) for suffix in SUFFIXES[kind]}


def expressions() -> dict[str, str]:
    found = {f"board, {one['title']}": target["expr"] for one in BOARD["panels"] for target in one["targets"]}
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    found |= {f"rule {rule['alert']}": rule["expr"] for group in groups for rule in group["rules"]}
    rules = yaml.safe_load(yaml.safe_load(ADAPTER.read_text("utf-8"))["data"]["config.yaml"])
    for kind in ("rules", "externalRules"):
        found |= {f"adapter, {rule['seriesQuery']}": rule["metricsQuery"] for rule in rules[kind]}
    return found


def test_every_metric_that_is_looked_at_is_one_that_is_shown(shown: set[str]) -> None:
    unknown = {where: set(NAME.findall(said)) - shown - METRICS for where, said in expressions().items()}
    assert not {where: names for where, names in unknown.items() if names}


def test_every_expression_looks_at_something() -> None:
    assert all(NAME.search(said) for said in expressions().values())
    named = {name for said in expressions().values() for name in re.findall(r'queue="([^"]+)"', said)}
    assert named <= QUEUES


def test_panels_of_the_board_do_not_lie_on_each_other() -> None:
    places = [(one["gridPos"]["x"], one["gridPos"]["y"]) for one in BOARD["panels"]]
    assert len(set(places)) == len(places)
    assert len({one["id"] for one in BOARD["panels"]}) == len(places)
    assert all(one["datasource"]["uid"] == "${datasource}" for one in BOARD["panels"])


def test_every_alert_has_a_section_in_the_runbook() -> None:
    runbook = (ROOT / "docs" / "runbook.md").read_text("utf-8")
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    alerts = {rule["alert"] for group in groups for rule in group["rules"]}
    assert alerts == set(re.findall(r"^### (Sameas\w+)", runbook, re.MULTILINE))

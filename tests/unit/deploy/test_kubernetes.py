"""The manifests for Kubernetes: what its schemas accept, and what is true of the house."""

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from sameas.settings import NAMES, PREFIX, load_settings
from tests.unit.deploy.promised import APP, METRICS, QUEUES

FOLDER = Path(__file__).resolve().parents[3] / "deploy" / "kubernetes"
KUSTOMIZATION = "kustomization.yaml"
# The oldest that is still looked after, and the newest that the schemas are there for.
VERSIONS = ("1.33", kubernetes_validate.latest_version())
DOCUMENTS: dict[tuple[str, str, str], dict[str, Any]] = {
    (path.name, document["kind"], document["metadata"]["name"]): document
    for path in sorted(FOLDER.glob("*.yaml"))
    if path.name != KUSTOMIZATION
    for document in yaml.safe_load_all(path.read_text("utf-8"))
}
CONFIG: dict[str, str] = DOCUMENTS["config.yaml", "ConfigMap", "sameas"]["data"]


def deployment(name: str) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENTS[f"{name}.yaml", "Deployment", name]["spec"]["template"]["spec"]
    return found


def container(name: str) -> dict[str, Any]:
    (found,) = deployment(name)["containers"]
    return dict(found)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("which", DOCUMENTS, ids=" ".join)
def test_the_schemas_of_kubernetes_accept_every_document(which: tuple[str, str, str], version: str) -> None:
    kubernetes_validate.validate(DOCUMENTS[which], version, strict=True)


def test_a_document_with_an_unknown_field_is_not_accepted() -> None:
    wrong = {**DOCUMENTS["api.yaml", "Service", "api"], "replicas": 3}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[0], strict=True)


def test_every_file_is_applied_but_the_rules_of_the_adapter() -> None:
    listed = yaml.safe_load((FOLDER / KUSTOMIZATION).read_text("utf-8"))["resources"]
    assert {*listed, KUSTOMIZATION, "metrics-adapter.yaml"} == {path.name for path in FOLDER.glob("*.yaml")}
    assert all(one["metadata"].get("namespace", "sameas") == "sameas" for one in DOCUMENTS.values())


def test_settings_are_settings_and_can_be_in_force(tmp_path: Path) -> None:
    text = "".join(path.read_text("utf-8") for path in FOLDER.glob("*.yaml"))
    named = {name.lower() for name in re.findall(rf"{PREFIX}([A-Z_]+)", text)} - {"api_key_secret"}
    assert named <= {*NAMES}
    known = {name: value for name, value in CONFIG.items() if name.removeprefix(PREFIX).lower() in NAMES}
    assert load_settings(known, folder=tmp_path).auth == "api-key"


def test_no_secret_stands_in_a_file() -> None:
    assert not [which for which in DOCUMENTS if which[1] == "Secret"]
    assert not [name for name in CONFIG if re.search(r"SECRET|PASSWORD|KEY|STORE|DATABASE|BROKER|EVENTS", name)]
    for name in ("api", "worker"):
        assert container(name)["envFrom"] == [{"configMapRef": {"name": "sameas"}}, {"secretRef": {"name": "sameas"}}]


@pytest.mark.parametrize(("name", "command"), [("api", "serve"), ("worker", "worker")])
def test_commands_are_commands_of_the_command_line(name: str, command: str) -> None:
    from sameas.cli.entry import main

    assert container(name)["args"] == [command]
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0


def test_probes_ask_for_paths_of_the_service() -> None:
    from sameas.server.app import ROUTES

    asked = {
        container("api")[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")
    }
    assert asked == {"/health/live", "/health/ready"}
    annotations = DOCUMENTS["api.yaml", "Deployment", "api"]["spec"]["template"]["metadata"]["annotations"]
    assert {*asked, annotations["prometheus.io/path"]} <= {route.path for route in ROUTES}


def test_a_broker_that_is_away_restarts_no_worker() -> None:
    assert "livenessProbe" not in container("worker")


@pytest.mark.parametrize(("name", "before"), [("api", 5), ("worker", 14)])
def test_a_pod_has_longer_than_its_drain_and_the_grace_time(name: str, before: int) -> None:
    drain = " ".join(container(name)["lifecycle"]["preStop"]["exec"]["command"])
    assert {"api": "sleep 5", "worker": "timeout 7"}[name] in drain
    assert deployment(name)["terminationGracePeriodSeconds"] > before + float(CONFIG["SAMEAS_GRACE"])


def test_the_drain_of_a_worker_names_every_queue_and_the_app() -> None:
    drain = " ".join(container("worker")["lifecycle"]["preStop"]["exec"]["command"])
    assert all(re.search(rf"\b{re.escape(queue)}\b", drain) for queue in QUEUES)
    said = drain + " ".join(container("worker")["startupProbe"]["exec"]["command"])
    assert set(re.findall(r"-A (\S+)", said)) == {APP}


@pytest.mark.parametrize("name", ["api", "worker"])
def test_containers_have_no_rights_and_write_their_own_folders_only(name: str) -> None:
    assert container(name)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert deployment(name)["securityContext"]["runAsUser"] == 10001
    assert all("emptyDir" in volume for volume in deployment(name)["volumes"])
    assert {mount["mountPath"] for mount in container(name)["volumeMounts"]} == {CONFIG["SAMEAS_HOME"], "/tmp"}


@pytest.mark.parametrize(("kind", "field"), [("Service", "selector"), ("PodDisruptionBudget", "matchLabels")])
def test_what_selects_pods_finds_them(kind: str, field: str) -> None:
    for (file, found, name), document in DOCUMENTS.items():
        if found == kind:
            labels = DOCUMENTS[file, "Deployment", name]["spec"]["template"]["metadata"]["labels"]
            selector = document["spec"]["selector"]
            assert (selector if field == "selector" else selector[field]).items() <= labels.items()


def test_autoscalers_look_at_metrics_that_the_adapter_gives_out() -> None:
    adapter = yaml.safe_load(
        DOCUMENTS["metrics-adapter.yaml", "ConfigMap", "metrics-adapter-rules"]["data"]["config.yaml"]
    )

    def given(kind: str) -> set[str]:
        return {rule.get("name", {}).get("as") or rule["seriesQuery"].partition("{")[0] for rule in adapter[kind]}

    wanted: dict[str, set[str]] = {"Pods": set(), "External": set()}
    for (file, kind, name), document in DOCUMENTS.items():
        if kind == "HorizontalPodAutoscaler":
            assert (file, "Deployment", name) in DOCUMENTS
            for metric in document["spec"]["metrics"]:
                if metric["type"] != "Resource":
                    wanted[metric["type"]].add(metric[metric["type"].lower()]["metric"]["name"])
    assert wanted == {"Pods": given("rules"), "External": given("externalRules")}
    assert "sameas_queue_oldest_seconds" in METRICS & wanted["External"]


def test_a_worker_is_scaled_by_as_many_runs_as_it_does_at_a_time() -> None:
    work = DOCUMENTS["worker.yaml", "HorizontalPodAutoscaler", "worker"]["spec"]["metrics"][0]["external"]
    assert work["target"]["averageValue"] == CONFIG["SAMEAS_MAX_RUNS"]


def test_nobody_reaches_a_worker() -> None:
    policies = [document["spec"] for (_, kind, _), document in DOCUMENTS.items() if kind == "NetworkPolicy"]
    everybody = next(one for one in policies if "Egress" in one["policyTypes"])
    assert "Ingress" in everybody["policyTypes"]
    assert "ingress" not in everybody
    component = "app.kubernetes.io/component"
    opened = [one["podSelector"]["matchLabels"].get(component) for one in policies if "ingress" in one]
    assert opened == ["api"]

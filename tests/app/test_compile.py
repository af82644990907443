"""What Apps become in a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from kvestigate.app import AppSpec, compile_to_k8s, load_app
from kvestigate.app.compile import KINDS
from kvestigate.app.rendering import as_json, as_yaml
from kvestigate.app.spec import ConfigFile, Target
from kvestigate.errors import InputError
from kvestigate.kube import builtins
from kvestigate.kube.yaml_documents import load
from kvestigate.manifests.model import Source
from kvestigate.manifests.parse import parse
from tests.app.conftest import EXAMPLES, FEW, SPECS, app

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: str(path.stem))
def test_the_examples_compile_to_what_was_reviewed(path: Path) -> None:
    assert as_yaml(load_app(path)) == (GOLDEN / path.name).read_text()


def by_kind(spec: AppSpec) -> dict[str, dict[str, Any]]:
    return {it["kind"]: it for it in compile_to_k8s(spec)}


def container(spec: AppSpec) -> dict[str, Any]:
    [found] = compile_to_k8s(spec)[-1]["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("fields", "kinds"),
    [
        ({}, ["Deployment"]),
        ({"lifecycle": "interactive"}, ["Deployment"]),
        ({"lifecycle": "batch"}, ["Job"]),
        ({"k8s": {"kind": "job"}}, ["Job"]),
        ({"k8s": {"kind": "statefulset"}}, ["Service", "StatefulSet"]),
        ({"k8s": {"ports": [80]}}, ["Service", "Deployment"]),
        ({"k8s": {"ports": [80], "expose": "none"}}, ["Deployment"]),
        ({"k8s": {"ports": [80], "kind": "statefulset"}}, ["Service", "Service", "StatefulSet"]),
        ({"distributed": {"shards": 2}}, ["Service", "Job"]),
        (
            {"shared_config_files": [{"name": "a", "content": "x"}], "k8s": {"ports": [80]}},
            ["ConfigMap", "Service", "Deployment"],
        ),
    ],
)
def test_kinds(fields: dict[str, Any], kinds: list[str]) -> None:
    assert [it["kind"] for it in compile_to_k8s(app(**fields))] == kinds


@pytest.mark.parametrize(
    ("expose", "type_"),
    [("cluster", "ClusterIP"), ("node-port", "NodePort"), ("load-balancer", "LoadBalancer")],
)
def test_ports(expose: str, type_: str) -> None:
    ports = [{"name": "http", "port": 80, "target_port": 8080}, {"port": 53, "protocol": "UDP"}]
    spec = app(k8s={"ports": ports, "expose": expose, "health_path": "/ok"})
    service = by_kind(spec)["Service"]["spec"]
    assert service["type"] == type_
    assert service["ports"] == [
        {"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"},
        {"name": "port-53-udp", "port": 53, "targetPort": "port-53-udp", "protocol": "UDP"},
    ]
    made = container(spec)
    assert [(it["name"], it["containerPort"]) for it in made["ports"]] == [
        ("http", 8080),
        ("port-53-udp", 53),
    ]
    assert made["readinessProbe"] == {"httpGet": {"path": "/ok", "port": "http"}}


def test_everything_a_pod_can_have() -> None:
    spec = app(
        command=["sh", "-c", "echo $(HOME) $$"],
        env={"A": "$(B)"},
        lifecycle="interactive",
        resources={"gpu": 2, "cpu": 4, "memory": "64Gi"},
        k8s={
            "node_selector": {"disk": "ssd"},
            "tolerations": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
            "service_account": "runner",
            "env_from_secrets": ["tokens"],
            "volumes": {"/data": "claim", "/more": "claim", "/other": "second"},
        },
    )
    pod = by_kind(spec)["Deployment"]["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"disk": "ssd"}
    assert pod["tolerations"] == [
        {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}
    ]
    assert pod["serviceAccountName"] == "runner"
    assert "automountServiceAccountToken" not in pod
    assert [it["persistentVolumeClaim"]["claimName"] for it in pod["volumes"]] == [
        "claim",
        "second",
    ]
    [made] = pod["containers"]
    # The kubelet would take $(B) for a reference; on a host it would be text.
    assert made["command"] == ["sh", "-c", "echo $$(HOME) $$$"]
    assert made["env"] == [{"name": "A", "value": "$$(B)"}]
    assert made["envFrom"] == [{"secretRef": {"name": "tokens"}}]
    assert made["resources"] == {
        "requests": {"cpu": "4", "memory": "64Gi"},
        "limits": {"cpu": "4", "memory": "64Gi", "nvidia.com/gpu": "2"},
    }
    assert [(it["name"], it["mountPath"]) for it in made["volumeMounts"]] == [
        ("volume-0", "/data"),
        ("volume-0", "/more"),
        ("volume-1", "/other"),
    ]
    assert (made["stdin"], made["tty"]) == (True, True)


@pytest.mark.parametrize(
    ("restart", "policy", "limit"),
    [(None, "Never", 0), ("never", "Never", 0), ("on-failure", "OnFailure", 6)],
)
def test_how_jobs_are_tried_again(restart: str | None, policy: str, limit: int) -> None:
    job = by_kind(app(lifecycle="batch", restart=restart))["Job"]["spec"]
    assert (job["template"]["spec"]["restartPolicy"], job["backoffLimit"]) == (policy, limit)


def test_another_job_has_another_name() -> None:
    def name(**fields: Any) -> str:
        return str(by_kind(app(lifecycle="batch", **fields))["Job"]["metadata"]["name"])

    assert name() == name() == name(workspace={"cordon_node": False})
    assert name() != name(env={"A": "1"})
    assert name().startswith("web-")


def test_ranks() -> None:
    spec = app(distributed={"shards": 2})
    job = by_kind(spec)["Job"]
    name = job["metadata"]["name"]
    assert (job["spec"]["completions"], job["spec"]["completionMode"]) == (2, "Indexed")
    assert job["spec"]["template"]["spec"]["subdomain"] == "web-peers"
    env = {it["name"]: it.get("value") for it in container(spec)["env"]}
    assert env == {
        "DIST_RANK": None,
        "DIST_WORLD_SIZE": "2",
        "DIST_PEERS": f"{name}-0.web-peers,{name}-1.web-peers",
        "DIST_COORDINATOR": f"{name}-0.web-peers",
    }


def test_other_config_means_other_pods() -> None:
    def template(content: str) -> Any:
        spec = app(shared_config_files=[{"name": "a.toml", "content": content}])
        return by_kind(spec)["Deployment"]["spec"]["template"]

    assert template("x") == template("x")
    assert template("x") != template("y")
    [made] = template("x")["spec"]["containers"]
    assert made["env"] == [{"name": "APP_CONFIG_DIR", "value": "/etc/app-config"}]
    assert made["volumeMounts"][0]["mountPath"] == "/etc/app-config"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"k8s": {"image": ""}}, "k8s.image: is needed"),
        ({"lifecycle": "batch", "restart": "always"}, "restart: 'always' contradicts a job"),
        ({"restart": "never"}, "restart: 'never' cannot be had from a deployment"),
        (
            {"restart": "on-failure", "k8s": {"kind": "statefulset"}},
            "restart: 'on-failure' cannot be had from a statefulset",
        ),
        (
            {"distributed": {"shards": 2}, "k8s": {"kind": "deployment"}},
            "k8s.kind: 'deployment' knows no ranks",
        ),
    ],
)
def test_contradictions_are_told_with_the_way_out(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        compile_to_k8s(app(**fields))
    assert caught.value.hint


def test_config_files_must_have_been_read() -> None:
    spec = app(shared_config_files=["a.toml"])
    assert spec.shared_config_files == (ConfigFile("a.toml"),)
    with pytest.raises(InputError, match=r"'a\.toml' was not read"):
        compile_to_k8s(spec)


@FEW
@given(SPECS)
def test_all_objects_are_wellformed_and_found_again(spec: AppSpec) -> None:
    try:
        manifests = compile_to_k8s(spec)
    except InputError:
        return
    kinds = {builtins.resource(it).kind for it in KINDS}
    assert {it["kind"] for it in manifests} <= kinds
    assert {it["metadata"]["labels"]["kvestigate.dev/app"] for it in manifests} == {
        spec.metadata.name
    }
    names = [(it["kind"], it["metadata"]["name"]) for it in manifests]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 63 for _, name in names)
    if spec.target is Target.K8S:
        # What is printed can be applied, and is the same in both formats.
        from_yaml = parse([Source("yaml", as_yaml(spec))])
        from_json = parse([Source("json", as_json(spec))])
        assert [it.body for it in from_yaml] == manifests
        assert [it.body for it in from_json] == manifests


def test_hosts_are_printed_as_workspaces() -> None:
    [document] = load(as_yaml(load_app(EXAMPLES / "trainer.yaml")))
    assert document.value["workspace"]["node"] == "gpu-node-7"
    assert document.value["launch"]["command"] == ["python3", "-m", "train"]

"""The unmodified kubectl does on a plane what it does on any cluster, verb by verb."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.served_plane import ServedPlane
from tests.upstream import binaries

pytestmark = pytest.mark.real

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]},
        },
    },
}
READY = {"status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2}}
READY["status"] |= {"readyReplicas": 2, "availableReplicas": 2}


class Kubectl:
    def __init__(self, kubeconfig: Path, home: Path) -> None:
        program = binaries.find().path("kubectl")
        self._command = [program, f"--kubeconfig={kubeconfig}", f"--cache-dir={home}/cache"]
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(home)}

    def __call__(self, *arguments: str, stdin: Any = None, editor: str = "") -> str:
        done = subprocess.run(
            [*self._command, *arguments],
            check=False,
            capture_output=True,
            text=True,
            timeout=30,
            input=None if stdin is None else json.dumps(stdin),
            env={**self._environment, "KUBE_EDITOR": editor},
        )
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    home = tmp_path_factory.mktemp("kubectl")
    with ServedPlane(tmp_path_factory.mktemp("plane"), "--memory") as plane:
        yield Kubectl(plane.admin_kubeconfig(), home)


@pytest.fixture
def web(kubectl: Kubectl) -> Iterator[Kubectl]:
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    yield kubectl
    kubectl("delete", "deployment", "web")


def test_get_shows_tables_and_objects(web: Kubectl) -> None:
    assert web("get", "deployments").split()[:3] == ["NAME", "READY", "UP-TO-DATE"]
    assert "deployment.apps/web" in web("get", "all", "-o", "wide")
    assert web("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "2"


def test_describe(web: Kubectl) -> None:
    assert "RollingUpdateStrategy" in web("describe", "deployment", "web")


@pytest.mark.parametrize("where", ["client", "server"])
def test_apply(kubectl: Kubectl, where: str) -> None:
    options = [f"--server-side={'true' if where == 'server' else 'false'}"]
    name = f"applied-{where}"
    wanted = {**DEPLOYMENT, "metadata": {"name": name}}
    kubectl("apply", "-f", "-", *options, stdin=wanted)
    changed = {**wanted, "spec": {**wanted["spec"], "replicas": 5}}
    kubectl("apply", "-f", "-", *options, stdin=changed)
    assert kubectl("get", "deploy", name, "-o", "jsonpath={.spec.replicas}") == "5"
    assert not kubectl("diff", "-f", "-", *options, stdin=changed)


def test_changes(web: Kubectl) -> None:
    web("label", "deployment", "web", "tier=front")
    web("annotate", "deployment", "web", "note=kept")
    web("patch", "deployment", "web", "-p", '{"spec":{"minReadySeconds":3}}')
    web("scale", "deployment", "web", "--replicas=4")
    web("set", "image", "deployment/web", "web=nginx:1.28")
    web("edit", "deployment", "web", editor="sed -i s/nginx:1.28/nginx:1.29/")
    found = json.loads(web("get", "deployment", "web", "-o", "json"))
    assert found["metadata"]["labels"] == {"tier": "front"}
    assert found["metadata"]["annotations"]["note"] == "kept"
    assert (found["spec"]["minReadySeconds"], found["spec"]["replicas"]) == (3, 4)
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.29"
    web("replace", "-f", "-", stdin=DEPLOYMENT)
    assert web("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "2"


def test_rollout_and_wait(web: Kubectl) -> None:
    condition = {"type": "Available", "status": "True"}
    status = {"status": {**READY["status"], "conditions": [condition]}}
    web("patch", "deployment", "web", "--subresource=status", "-p", json.dumps(status))
    assert "successfully rolled out" in web("rollout", "status", "deployment/web")
    done = web("wait", "--for=condition=Available", "deployment/web", "--timeout=10s")
    assert "condition met" in done


def test_discovery_and_schemas(kubectl: Kubectl) -> None:
    assert "deployments" in kubectl("api-resources")
    assert "apps/v1" in kubectl("api-versions")
    assert "replicas" in kubectl("explain", "deployment.spec")
    assert "enum: Always, IfNotPresent" in kubectl("explain", "pod.spec.containers")


def test_a_kind_that_nobody_defined_is_called_so(kubectl: Kubectl) -> None:
    unknown = {"apiVersion": "example.com/v1", "kind": "Odd", "metadata": {"name": "a"}}
    with pytest.raises(AssertionError, match='no matches for kind "Odd" in version'):
        kubectl("apply", "-f", "-", stdin=unknown)


def test_rights(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    kubectl("create", "serviceaccount", "robot")
    as_robot = "--as=system:serviceaccount:default:robot"
    kubectl("create", "rolebinding", "sees", "--clusterrole=view", "--serviceaccount=default:robot")
    assert kubectl("auth", "can-i", "list", "pods", as_robot).strip() == "yes"
    assert "robot" in kubectl("auth", "whoami", as_robot)

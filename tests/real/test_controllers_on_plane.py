"""The unmodified kube-controller-manager and kube-scheduler run a plane."""

from __future__ import annotations

import datetime
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.signing_requests import signing_request
from tests.upstream import binaries
from tests.upstream.judge import Judge, Refused
from tests.upstream.plane import ControlledPlane
from tests.upstream.processes import wait_until

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

NODES = ("node-1", "node-2")
READY = [{"type": "Ready", "status": "True"}]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlledPlane]:
    try:
        found = binaries.find()
    except binaries.BinariesMissing as missing:
        pytest.fail(str(missing), pytrace=False)
    with ControlledPlane(found, tmp_path_factory.mktemp("plane")) as served:
        with served.judge() as judge:
            for name in NODES:
                _add_node(judge, name)
        served.start_controllers()
        served.start_scheduler()
        yield served


@pytest.fixture
def judge(plane: ControlledPlane) -> Iterator[Judge]:
    with plane.judge() as judge:
        yield judge


@pytest.fixture
def namespace(judge: Judge) -> str:
    made = judge.post("/api/v1/namespaces", {"metadata": {"generateName": "test-"}})
    name: str = made["metadata"]["name"]
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    wait_until(lambda: judge.answers(account), "the namespace has no default service account")
    return name


def _add_node(judge: Judge, name: str) -> None:
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name}
    judge.post("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
    status = {"capacity": room, "allocatable": room, "conditions": READY}
    judge.merge(f"/api/v1/nodes/{name}/status", {"status": status})
    judge.merge(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _template(labels: dict[str, str], **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "image", "resources": {"requests": {"cpu": "100m"}}}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}


def _pods(judge: Judge, namespace: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = judge.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    return items


def _bound(judge: Judge, namespace: str, count: int) -> list[dict[str, Any]]:
    """The pods, once there are `count` and each has a node."""

    def happened() -> bool:
        pods = _pods(judge, namespace)
        return len(pods) == count and all(pod["spec"].get("nodeName") for pod in pods)

    wait_until(happened, f"not {count} bound pods in {namespace}")
    return _pods(judge, namespace)


def _set_phase(judge: Judge, pod: dict[str, Any], phase: str) -> None:
    """What a kubelet would report."""
    meta = pod["metadata"]
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
    conditions = READY if phase == "Running" else []
    judge.merge(path, {"status": {"phase": phase, "conditions": conditions}})


def _deploy(judge: Judge, namespace: str, replicas: int) -> str:
    labels = {"app": "web"}
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": _template(labels),
    }
    judge.post(path, {"metadata": {"name": "web"}, "spec": spec})
    return f"{path}/web"


def test_a_deployment_gets_its_pods_on_both_nodes(
    judge: Judge, namespace: str, plane: ControlledPlane
) -> None:
    path = _deploy(judge, namespace, 3)

    pods = _bound(judge, namespace, 3)

    assert {pod["spec"]["nodeName"] for pod in pods} == set(NODES)
    [replica_set] = judge.get(f"/apis/apps/v1/namespaces/{namespace}/replicasets")["items"]
    assert {pod["metadata"]["ownerReferences"][0]["uid"] for pod in pods} == {
        replica_set["metadata"]["uid"]
    }
    for pod in pods:
        _set_phase(judge, pod, "Running")
    command = [plane.binaries.path("kubectl"), f"--kubeconfig={plane.kubeconfig}"]
    rollout = [*command, "-n", namespace, "rollout", "status", "deployment/web", "--timeout=60s"]
    done = subprocess.run(rollout, capture_output=True, text=True, timeout=90, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "successfully rolled out" in done.stdout
    assert judge.get(path)["status"]["availableReplicas"] == 3


def test_scaling_brings_and_takes_pods(judge: Judge, namespace: str) -> None:
    path = _deploy(judge, namespace, 1)
    _bound(judge, namespace, 1)

    judge.merge(f"{path}/scale", {"spec": {"replicas": 4}})
    _bound(judge, namespace, 4)
    judge.merge(f"{path}/scale", {"spec": {"replicas": 1}})

    def staying() -> int:
        pods = _pods(judge, namespace)
        return sum("deletionTimestamp" not in pod["metadata"] for pod in pods)

    wait_until(lambda: staying() == 1, "more than one pod stays")


def test_a_job_completes(judge: Judge, namespace: str) -> None:
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    spec = {"completions": 2, "parallelism": 2, "template": _template({}, restartPolicy="Never")}
    judge.post(path, {"metadata": {"name": "work"}, "spec": spec})

    for pod in _bound(judge, namespace, 2):
        _set_phase(judge, pod, "Succeeded")

    def complete() -> bool:
        conditions = judge.get(f"{path}/work").get("status", {}).get("conditions", [])
        return any(each["type"] == "Complete" and each["status"] == "True" for each in conditions)

    wait_until(complete, "the job is not complete")
    # The finalizers by which the controller counts pods are gone, too.
    assert all("finalizers" not in pod["metadata"] for pod in _pods(judge, namespace))


def test_a_replication_controller_keeps_its_pods(judge: Judge, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/replicationcontrollers"
    spec = {"replicas": 2, "selector": {"app": "web"}, "template": _template({"app": "web"})}
    judge.post(path, {"metadata": {"name": "web"}, "spec": spec})

    for pod in _bound(judge, namespace, 2):
        _set_phase(judge, pod, "Running")

    def counted() -> bool:
        status: dict[str, Any] = judge.get(f"{path}/web").get("status", {})
        return status.get("readyReplicas") == 2

    wait_until(counted, "the pods are not counted as ready")


def test_an_approved_request_gets_a_certificate(
    judge: Judge, namespace: str, plane: ControlledPlane
) -> None:
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    signer = "kubernetes.io/kube-apiserver-client"
    spec = {"request": signing_request("jane"), "signerName": signer, "usages": ["client auth"]}
    judge.post(path, {"metadata": {"name": namespace}, "spec": spec})

    command = [plane.binaries.path("kubectl"), f"--kubeconfig={plane.kubeconfig}"]
    approve = [*command, "certificate", "approve", namespace]
    done = subprocess.run(approve, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")

    def issued() -> bool:
        return bool(judge.get(f"{path}/{namespace}").get("status", {}).get("certificate"))

    wait_until(issued, "no certificate was issued")


def test_controllers_act_as_their_service_accounts(judge: Judge, namespace: str) -> None:
    _deploy(judge, namespace, 1)
    _bound(judge, namespace, 1)

    accounts = judge.get("/api/v1/namespaces/kube-system/serviceaccounts")["items"]

    names = {account["metadata"]["name"] for account in accounts}
    assert {"deployment-controller", "replicaset-controller", "job-controller"} <= names


def test_a_cronjob_starts_jobs(judge: Judge, namespace: str) -> None:
    batch = f"/apis/batch/v1/namespaces/{namespace}"
    job = {"spec": {"template": _template({}, restartPolicy="Never")}}
    made = judge.post(
        f"{batch}/cronjobs",
        {"metadata": {"name": "tick"}, "spec": {"schedule": "0 0 1 1 *", "jobTemplate": job}},
    )
    # It is late by a year: one job is due at once, and no other for a long time.
    last = {"status": {"lastScheduleTime": f"{_now().year - 1}-01-01T00:00:00Z"}}
    judge.merge(f"{batch}/cronjobs/tick/status", last)

    wait_until(lambda: bool(judge.get(f"{batch}/jobs")["items"]), "no job")

    [started] = judge.get(f"{batch}/jobs")["items"]
    assert started["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    _bound(judge, namespace, 1)


def test_a_deleted_namespace_is_emptied_and_goes(judge: Judge, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    judge.post(f"{path}/configmaps", {"metadata": {"name": "left", "finalizers": []}})
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    judge.post(f"{path}/configmaps", held)

    judge.delete(path)

    wait_until(lambda: not judge.answers(f"{path}/configmaps/left"), "the content is still there")
    assert judge.get(path)["status"]["phase"] == "Terminating"
    with pytest.raises(Refused) as refused:
        judge.post(f"{path}/configmaps", {"metadata": {"name": "late"}})
    assert refused.value.status == 403
    judge.merge(f"{path}/configmaps/held", {"metadata": {"finalizers": None}})
    wait_until(lambda: not judge.answers(path), "the namespace is still there")


@pytest.mark.parametrize(
    ("policy", "survives"), [("Background", False), ("Foreground", False), ("Orphan", True)]
)
def test_owned_objects_follow_their_owner_unless_orphaned(
    judge: Judge, namespace: str, policy: str, survives: bool
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    owner = judge.post(path, {"metadata": {"name": "owner"}})
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }
    judge.post(path, {"metadata": {"name": "owned", "ownerReferences": [reference]}})

    judge.send("DELETE", f"{path}/owner", {"propagationPolicy": policy})

    wait_until(lambda: not judge.answers(f"{path}/owner"), "the owner is still there")
    if survives:
        assert "ownerReferences" not in judge.get(f"{path}/owned")["metadata"]
    else:
        wait_until(lambda: not judge.answers(f"{path}/owned"), "the owned object is still there")


def test_evictions_respect_the_budget_that_the_controller_keeps(
    judge: Judge, namespace: str
) -> None:
    _deploy(judge, namespace, 3)
    pods = _bound(judge, namespace, 3)
    for pod in pods:
        _set_phase(judge, pod, "Running")
    budget = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
    judge.post(budget, {"metadata": {"name": "web"}, "spec": spec})

    def allowed() -> bool:
        status: dict[str, Any] = judge.get(f"{budget}/web").get("status", {})
        return status.get("disruptionsAllowed") == 1

    wait_until(allowed, "the budget allows no disruption")
    first, second = (pod["metadata"]["name"] for pod in pods[:2])
    core = f"/api/v1/namespaces/{namespace}/pods"
    judge.post(f"{core}/{first}/eviction", {"metadata": {"name": first}})

    with pytest.raises(Refused) as refused:
        judge.post(f"{core}/{second}/eviction", {"metadata": {"name": second}})

    assert refused.value.status == 429
    assert "deletionTimestamp" in judge.get(f"{core}/{first}")["metadata"]
    assert "deletionTimestamp" not in judge.get(f"{core}/{second}")["metadata"]


def test_a_service_gets_the_endpoints_of_its_ready_pods(judge: Judge, namespace: str) -> None:
    _deploy(judge, namespace, 2)
    pods = _bound(judge, namespace, 2)
    for number, pod in enumerate(pods, 1):
        _set_phase(judge, pod, "Running")
        ip = f"10.244.0.{number}"
        name = pod["metadata"]["name"]
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
        judge.merge(path, {"status": {"podIP": ip, "podIPs": [{"ip": ip}]}})
    service = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    judge.post(
        f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": "web"}, "spec": service}
    )

    def addresses() -> set[str]:
        slices = judge.get(f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices")
        return {
            address
            for each in slices["items"]
            for endpoint in each.get("endpoints") or ()
            for address in endpoint["addresses"]
        }

    wait_until(lambda: addresses() == {"10.244.0.1", "10.244.0.2"}, "not both pods are endpoints")

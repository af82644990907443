"""Tables: what kubectl prints, cell by cell."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.cluster.plane.response.tables.registry import COLUMNS, columns_of
from kvestigate.kube.builtins import resource
from tests.cluster.plane.conftest import Api

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
NOW = 1_800_000_000.0
LONG_AGO, JUST_NOW = "2027-01-10T08:00:00Z", "2027-01-15T07:59:30Z"


def cells(plural: str, obj: dict[str, Any]) -> dict[str, Any]:
    """The cells of an object by the names of their columns."""
    columns = columns_of(Kind(resource(plural)))
    meta = {"name": "a", "creationTimestamp": LONG_AGO, **obj.get("metadata", {})}
    made = columns.cells({"spec": {}, **obj, "metadata": meta}, NOW)
    return dict(zip((column.name for column in columns.columns), made, strict=True))


def test_every_table_names_its_objects() -> None:
    for columns in COLUMNS.values():
        assert "Name" in [column.name for column in columns.columns]


def container(
    name: str = "main", *, ready: bool = False, restarts: int = 0, **state: Any
) -> dict[str, Any]:
    last = state.pop("last", {})
    return {
        "name": name,
        "ready": ready,
        "restartCount": restarts,
        "state": state,
        "lastState": last,
    }


SPEC = {"containers": [{"name": "main"}]}
INIT = {**SPEC, "initContainers": [{"name": "one"}, {"name": "two"}]}
SIDECAR = {**SPEC, "initContainers": [{"name": "side", "restartPolicy": "Always"}]}
TWO = {"containers": [{"name": "main"}, {"name": "other"}]}
DONE: dict[str, Any] = {"terminated": {"exitCode": 0, "reason": "Completed"}}
CRASHED: dict[str, Any] = {"terminated": {"exitCode": 1, "finishedAt": JUST_NOW}}


@pytest.mark.parametrize(
    ("spec", "status", "ready", "shown"),
    [
        pytest.param(SPEC, {"phase": "Pending"}, "0/1", "Pending", id="pending"),
        pytest.param(
            SPEC,
            {"phase": "Running", "containerStatuses": [container(ready=True, running={})]},
            "1/1",
            "Running",
            id="running",
        ),
        pytest.param(
            SPEC,
            {
                "phase": "Running",
                "containerStatuses": [container(waiting={"reason": "CrashLoopBackOff"})],
            },
            "0/1",
            "CrashLoopBackOff",
            id="waiting",
        ),
        pytest.param(
            INIT,
            {"phase": "Pending", "initContainerStatuses": [container("one", running={})]},
            "0/1",
            "Init:0/2",
            id="initialising",
        ),
        pytest.param(
            INIT,
            {
                "phase": "Pending",
                "initContainerStatuses": [
                    container("one", **DONE),
                    container("two", waiting={"reason": "PodInitializing"}),
                ],
            },
            "0/1",
            "Init:1/2",
            id="second init container",
        ),
        pytest.param(
            INIT,
            {
                "phase": "Pending",
                "initContainerStatuses": [container("one", terminated={"exitCode": 3})],
            },
            "0/1",
            "Init:ExitCode:3",
            id="init container failed",
        ),
        pytest.param(
            INIT,
            {
                "phase": "Pending",
                "initContainerStatuses": [container("one", waiting={"reason": "ErrImagePull"})],
            },
            "0/1",
            "Init:ErrImagePull",
            id="init container waits",
        ),
        pytest.param(
            SIDECAR,
            {
                "phase": "Running",
                "initContainerStatuses": [
                    {**container("side", ready=True, running={}), "started": True}
                ],
                "containerStatuses": [container(ready=True, running={})],
            },
            "2/2",
            "Running",
            id="sidecars count",
        ),
        pytest.param(
            SPEC,
            {"phase": "Succeeded", "containerStatuses": [container(**DONE)]},
            "0/1",
            "Completed",
            id="completed",
        ),
        pytest.param(
            SPEC,
            {"phase": "Failed", "containerStatuses": [container(terminated={"exitCode": 2})]},
            "0/1",
            "ExitCode:2",
            id="exit code",
        ),
        pytest.param(
            SPEC,
            {
                "phase": "Failed",
                "containerStatuses": [container(terminated={"exitCode": 137, "signal": 9})],
            },
            "0/1",
            "Signal:9",
            id="signal",
        ),
        pytest.param(
            TWO,
            {
                "phase": "Running",
                "containerStatuses": [
                    container(**DONE),
                    container("other", ready=True, running={}),
                ],
            },
            "1/2",
            "NotReady",
            id="one of two completed",
        ),
        pytest.param(
            TWO,
            {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [
                    container(**DONE),
                    container("other", ready=True, running={}),
                ],
            },
            "1/2",
            "Running",
            id="one of two completed and ready",
        ),
        pytest.param(
            SPEC, {"phase": "Failed", "reason": "Evicted"}, "0/1", "Evicted", id="evicted"
        ),
        pytest.param(
            SPEC,
            {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}],
            },
            "0/1",
            "SchedulingGated",
            id="gated",
        ),
    ],
)
def test_the_state_of_a_pod_in_a_word(
    spec: dict[str, Any], status: dict[str, Any], ready: str, shown: str
) -> None:
    row = cells("pods", {"spec": spec, "status": status})
    assert (row["Ready"], row["Status"]) == (ready, shown)


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"phase": "Running"}, "Terminating"),
        ({"phase": "Succeeded"}, "Succeeded"),
        ({"phase": "Running", "reason": "NodeLost"}, "Unknown"),
    ],
)
def test_a_pod_on_its_way_out(status: dict[str, Any], shown: str) -> None:
    leaving = {"metadata": {"deletionTimestamp": JUST_NOW}, "spec": SPEC, "status": status}
    assert cells("pods", leaving)["Status"] == shown


@pytest.mark.parametrize(
    ("containers", "shown"),
    [
        ([container()], "0"),
        ([container(restarts=3)], "3"),
        ([container(restarts=3, last=CRASHED)], "3 (30s ago)"),
        ([container(restarts=1), container("other", restarts=2, last=CRASHED)], "3 (30s ago)"),
    ],
)
def test_restarts_and_how_long_ago(containers: list[dict[str, Any]], shown: str) -> None:
    status = {"phase": "Running", "containerStatuses": containers}
    assert cells("pods", {"spec": TWO, "status": status})["Restarts"] == shown


def test_where_a_pod_is() -> None:
    spec = {**SPEC, "nodeName": "n", "readinessGates": [{"conditionType": "x/y"}]}
    row = cells("pods", {"spec": spec, "status": {"podIPs": [{"ip": "10.1.0.7"}]}})
    assert list(row.values())[4:] == ["5d", "10.1.0.7", "n", "<none>", "0/1"]


@pytest.mark.parametrize(
    ("plural", "obj", "shown"),
    [
        (
            "nodes",
            {
                "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "x": "y"}},
                "spec": {"unschedulable": True},
                "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
            },
            {"Status": "NotReady,SchedulingDisabled", "Roles": "worker", "Internal-IP": "<none>"},
        ),
        ("nodes", {}, {"Status": "Unknown", "Roles": "<none>"}),
        (
            "services",
            {
                "spec": {
                    "type": "LoadBalancer",
                    "clusterIPs": ["10.0.0.9"],
                    "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}],
                },
                "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.2"}, {"hostname": "b"}]}},
            },
            {"External-IP": "192.0.2.2,b", "Port(s)": "80:30080/TCP", "Selector": "<none>"},
        ),
        ("services", {"spec": {"type": "LoadBalancer"}}, {"External-IP": "<pending>"}),
        (
            "services",
            {"spec": {"type": "ExternalName", "externalName": "example.com"}},
            {"Cluster-IP": "<none>", "External-IP": "example.com", "Port(s)": "<none>"},
        ),
        (
            "endpoints",
            {
                "subsets": [
                    {
                        "addresses": [{"ip": "10.1.0.1"}, {"ip": "fd00::1"}],
                        "ports": [{"port": 80}, {"port": 81}],
                    }
                ]
            },
            {"Endpoints": "10.1.0.1:80,[fd00::1]:80,10.1.0.1:81 + 1 more..."},
        ),
        (
            "persistentvolumeclaims",
            {
                "spec": {"volumeName": "v", "storageClassName": "fast"},
                "status": {
                    "phase": "Bound",
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadOnlyMany", "ReadWriteOnce"],
                },
            },
            {
                "Status": "Bound",
                "Capacity": "1Gi",
                "Access Modes": "RWO,ROX",
                "StorageClass": "fast",
            },
        ),
        (
            "resourcequotas",
            {"status": {"hard": {"pods": "5", "limits.cpu": "2"}, "used": {"pods": "1"}}},
            {"Request": "pods: 1/5", "Limit": "limits.cpu: 0/2"},
        ),
        (
            "events",
            {
                "involvedObject": {"kind": "Pod", "name": "p"},
                "message": " hello\n",
                "eventTime": "2027-01-15T07:59:30.000000Z",
                "series": {"count": 7, "lastObservedTime": "2027-01-15T07:59:50.000000Z"},
            },
            {"Last Seen": "10s", "First Seen": "30s", "Count": 7, "Object": "pod/p"},
        ),
        ("limitranges", {}, {"Created At": LONG_AGO}),
    ],
)
def test_cells(plural: str, obj: dict[str, Any], shown: dict[str, Any]) -> None:
    row = cells(plural, obj)
    assert {name: row[name] for name in shown} == shown


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("", "PartialObjectMetadata"),
        ("?includeObject=Metadata", "PartialObjectMetadata"),
        ("?includeObject=Object", "Namespace"),
        ("?includeObject=None", None),
    ],
)
async def test_rows_carry_what_was_asked_for(api: Api, query: str, kind: str | None) -> None:
    table = (await api.get(f"/api/v1/namespaces{query}", accept=TABLE)).body
    assert {(row["object"] or {}).get("kind") for row in table["rows"]} == {kind}


async def test_nothing_else_can_be_asked_for(api: Api) -> None:
    refused = await api.get("/api/v1/namespaces?includeObject=All", accept=TABLE)
    assert refused.status == 400
    assert 'includeObject: Invalid value: "All"' in refused.body["message"]


async def test_finished_pods_say_so_in_their_row(api: Api) -> None:
    pods = "/api/v1/namespaces/default/pods"
    spec = {"containers": [{"name": "main", "image": "x"}], "nodeName": "n"}
    await api.post(pods, {"metadata": {"name": "a"}, "spec": spec})
    await api.patch(f"{pods}/a/status", {"status": {"phase": "Succeeded"}})
    (row,) = (await api.get(pods, accept=TABLE)).body["rows"]
    (condition,) = row["conditions"]
    assert (condition["type"], condition["reason"]) == ("Completed", "Succeeded")

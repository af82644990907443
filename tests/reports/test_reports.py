"""Every report, over snapshots whose totals can be counted by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kvestigate.errors import UsageError
from kvestigate.render.encode import to_json
from kvestigate.render.plain import to_text
from kvestigate.render.terminal import to_terminal
from kvestigate.reports.model import Report
from kvestigate.reports.operations import RUN
from kvestigate.reports.registry import REPORTS, find
from kvestigate.snapshot import listings
from tests.health.snapshots import named, snapshot
from tests.snapshot.objects import container, node, pod


def result(name: str, *args: Any, **kwargs: Any) -> Any:
    """What `--json` would write."""
    return json.loads(to_json(find(name).collect(snapshot(*args, **kwargs))))


def shown(name: str, *args: Any, **kwargs: Any) -> str:
    report = find(name)
    return to_text(report.render(report.collect(snapshot(*args, **kwargs))))


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_an_empty_or_closed_cluster_is_no_failure(report: Report) -> None:
    assert to_text(report.render(report.collect(snapshot())))
    closed = snapshot(denied=report.needs, absent=())
    assert to_text(report.render(report.collect(closed)))
    assert len(closed.missing(report.needs)) == len(report.needs)


@pytest.mark.parametrize(
    ("word", "hint"),
    [("node", "did you mean 'nodes'?"), ("zzz", "the reports are: nodes, metrics")],
)
def test_a_mistyped_report_is_named(word: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"no report '{word}'") as raised:
        find(word)
    assert hint in (raised.value.hint or "")


def test_every_report_is_named_where_reports_are_listed() -> None:
    names = [report.name for report in REPORTS]
    assert re.findall(r"[a-z]+", RUN.summary.partition(":")[2]) == [*names[:-1], "or", names[-1]]
    glossary = Path(__file__).parents[2] / "docs" / "glossary.md"
    assert f"| one view of a snapshot: {', '.join(names)} |" in glossary.read_text(encoding="utf-8")


def test_the_longest_model_leaves_room_for_the_driver_in_80_columns() -> None:
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
        "nvidia.com/gpu.memory": "97887",
        "nvidia.com/cuda.driver-version.full": "580.95.05",
    }
    report = find("gpu")
    seen = snapshot({listings.NODES: [node("node-01", labels=labels, gpu="8")]})
    shown = to_terminal(report.render(report.collect(seen)), width=80)
    [line] = [line for line in shown.splitlines() if line.startswith("node-01")]
    assert (len(line), line.split()[2:]) == (80, ["8", "95.6", "GiB", "580.95.05"])


def test_nodes_add_up() -> None:
    nodes = [node(f"n{i}", cpu="8", memory="32Gi", pods="110", gpu="4") for i in range(3)]
    pods = [
        pod(f"p{i}", container(cpu="1500m", memory="2Gi", gpu="1"), on=f"n{i % 2}")
        for i in range(5)
    ]
    objects = {listings.NODES: nodes, listings.PODS: pods}
    report = result("nodes", objects)
    assert report["total"] == {
        "name": "total",
        "ready": True,
        "schedulable": True,
        "cpu_millis": {"requested": 7500, "allocatable": 24000},
        "memory_bytes": {"requested": 10 * 2**30, "allocatable": 96 * 2**30},
        "gpus": {"requested": 5, "allocatable": 12},
        "pods": {"requested": 5, "allocatable": 330},
        "address": "",
        "partitions": {"requested": 0, "allocatable": 0},
    }
    assert [row["gpus"]["requested"] for row in report["nodes"]] == [3, 2, 0]
    words = shown("nodes", objects)
    assert "4.5 / 8 (56%)" in words
    assert "3/3 ready" in words


def test_nodes_tell_where_others_reach_them() -> None:
    addresses = [
        {"type": "Hostname", "address": "n"},
        {"type": "InternalIP", "address": "10.0.0.5"},
    ]
    one = node("n0", cpu="8")
    one.setdefault("status", {})["addresses"] = addresses
    assert [row["address"] for row in result("nodes", {listings.NODES: [one]})["nodes"]] == [
        "10.0.0.5"
    ]


def test_usage_is_told_where_it_is_measured() -> None:
    metrics = [{"metadata": {"name": "n"}, "usage": {"cpu": "2", "memory": "1Gi"}}]
    pods = [
        named(
            f"p{i:02}",
            containers=[{"name": "c", "usage": {"cpu": f"{i}m", "memory": f"{20 - i}Mi"}}],
        )
        for i in range(20)
    ]
    report = result(
        "metrics",
        {
            listings.NODES: [node("n", cpu="8", memory="4Gi")],
            listings.NODE_METRICS: metrics,
            listings.POD_METRICS: pods,
        },
    )
    assert report["available"]
    assert report["nodes"][0]["cpu_millis"] == 2000
    assert [it["name"] for it in report["by_cpu"]] == [f"p{i:02}" for i in range(19, 4, -1)]
    assert [it["name"] for it in report["by_memory"]] == [f"p{i:02}" for i in range(15)]


def test_without_metrics_server_the_report_says_so() -> None:
    assert not result("metrics")["available"]
    assert "metrics-server" in shown("metrics")


def test_gpus_and_who_has_them() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.memory": "23034"}
    objects = {
        listings.NODES: [node("a", labels=labels, gpu="4"), node("b", cpu="4")],
        listings.PODS: [
            pod("train", container(gpu="3"), on="a"),
            pod("more", container(gpu="8"), phase="Pending"),
        ],
    }
    report = result("gpu", objects)
    assert (report["allocatable"], report["requested"], report["waiting"]) == (4, 3, 8)
    assert [it["node"] for it in report["nodes"]] == ["a"]
    words = shown("gpu", objects)
    assert "3 of 4 GPUs allocated, 1 free, 8 requested by pending pods" in words
    assert "NVIDIA-L4" in words
    assert "(pending)" in words


MIG = {"nvidia.com/gpu.count": "2", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
PART = "nvidia.com/mig-1g.10gb"


def test_divided_gpus_are_counted_as_gpus_with_their_partitions_beside() -> None:
    pods = [pod(f"p{i}", container(**{PART: "1"}), on="a") for i in range(9)]
    objects: dict[Any, Any] = {
        listings.NODES: [
            node("a", labels=MIG, gpu="0", **{PART: "14"}),
            node("b", gpu="8"),
        ],
        listings.PODS: [*pods, pod("whole", container(gpu="3"), on="b")],
    }
    report = result("gpu", objects)
    assert (report["physical"], report["allocatable"], report["requested"]) == (10, 8, 3)
    assert report["partitions"] == {"offered": 14, "allocated": 9}
    words = shown("gpu", objects)
    assert (
        "10 GPUs: 3 of 8 whole GPUs allocated, 5 free; 9 of 14 partitions allocated, 5 free"
    ) in words
    assert "9 / 14 parts" in shown("nodes", objects)
    assert result("nodes", objects)["total"]["gpus"] == {"requested": 3, "allocatable": 8}


def slice_of(*names: str) -> dict[str, Any]:
    devices = [{"name": name, "attributes": {"type": {"string": "gpu"}}} for name in names]
    spec = {"driver": "gpu.nvidia.com", "pool": {"name": "n"}, "nodeName": "n", "devices": devices}
    return {"metadata": {"name": "s"}, "spec": spec}


def claim_of(device: str) -> dict[str, Any]:
    held = {"request": "r", "driver": "gpu.nvidia.com", "pool": "n", "device": device}
    allocation = {"devices": {"results": [held]}}
    users = [{"resource": "pods", "name": "train"}]
    return named("c", "ml", status={"allocation": allocation, "reservedFor": users})


def test_gpus_of_resource_slices_are_counted() -> None:
    objects: dict[Any, Any] = {
        listings.NODES: [node("n", cpu="8")],
        listings.DEVICE_SLICES: [slice_of("gpu-0", "gpu-1", "gpu-2")],
        listings.RESOURCE_CLAIMS: [claim_of("gpu-1")],
    }
    report = result("gpu", objects)
    assert (report["physical"], report["allocatable"], report["requested"]) == (3, 3, 1)
    words = shown("gpu", objects)
    assert "1 of 3 GPUs allocated, 2 free" in words
    assert "ml/train (claim ml/c)" in words
    assert "1 / 3 (33%)" in shown("nodes", objects)


@pytest.mark.parametrize(
    ("denied", "words"),
    [
        ((listings.DEVICE_SLICES,), "GPUs: unknown (resourceslices could not be listed)"),
        (
            (listings.RESOURCE_CLAIMS,),
            "3 GPUs; allocated: unknown (resourceclaims could not be listed)",
        ),
    ],
)
def test_gpus_of_kinds_that_may_not_be_listed_are_unknown(denied: Any, words: str) -> None:
    objects: dict[Any, Any] = {
        listings.NODES: [node("n", cpu="8")],
        listings.DEVICE_SLICES: [slice_of("gpu-0", "gpu-1", "gpu-2")],
        listings.RESOURCE_CLAIMS: [claim_of("gpu-1")],
    }
    left = {kind: given for kind, given in objects.items() if kind not in denied}
    assert words in shown("gpu", left, denied=denied)


def test_the_figures_of_device_plugins_stand_beside_unknown_slices() -> None:
    objects = {listings.NODES: [node("n", gpu="8"), node("m", cpu="8")]}
    words = shown("gpu", objects, denied=(listings.DEVICE_SLICES,))
    assert "0 of 8 GPUs allocated, 8 free" in words
    assert "GPUs of ResourceSlices: unknown" in words
    report = result("gpu", objects, denied=(listings.DEVICE_SLICES,))
    assert (report["physical"], report["allocatable"], report["requested"]) == (None, None, None)


def test_workloads_of_every_kind() -> None:
    template = {"spec": {"containers": [{"name": "a", "image": "web:2"}]}}
    spec = {"replicas": 3, "template": template}
    status = {"desiredNumberScheduled": 2, "numberReady": 2}
    report = result(
        "workloads",
        {
            listings.DEPLOYMENTS: [named("web", spec=spec, status={"readyReplicas": 1})],
            listings.STATEFUL_SETS: [named("db", spec=spec, status={"readyReplicas": 3})],
            listings.DAEMON_SETS: [named("log", spec={"template": template}, status=status)],
        },
    )
    assert [(it["kind"], it["name"], it["ready"], it["desired"]) for it in report["workloads"]] == [
        ("DaemonSet", "log", 2, 2),
        ("Deployment", "web", 1, 3),
        ("StatefulSet", "db", 3, 3),
    ]
    assert report["workloads"][0]["images"] == ["web:2"]


SERVICE = {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]}


def endpoints(service: str, *ready: bool, family: str = "IPv4") -> dict[str, Any]:
    found = [
        {"addresses": [f"10.0.0.{i}"], "conditions": {"ready": it}, "targetRef": {"uid": str(i)}}
        for i, it in enumerate(ready)
    ]
    labels = {"kubernetes.io/service-name": service}
    return named(f"{service}-{family}", labels=labels, addressType=family, endpoints=found)


def ingress(service: str, **port: Any) -> dict[str, Any]:
    path = {"path": "/", "backend": {"service": {"name": service, "port": port}}}
    return named("in", spec={"rules": [{"host": "shop.test", "http": {"paths": [path]}}]})


def test_endpoints_of_both_families_count_once() -> None:
    report = result(
        "network",
        {
            listings.SERVICES: [named("web", spec=SERVICE), named("none", spec=SERVICE)],
            listings.ENDPOINT_SLICES: [
                endpoints("web", True, True, False),
                endpoints("web", True, True, False, family="IPv6"),
            ],
        },
    )
    assert [(it["name"], it["ready"], it["not_ready"]) for it in report["services"]] == [
        ("web", 2, 1),
        ("none", 0, 0),
    ]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (ingress("web", number=80), ""),
        (ingress("web", name="http"), ""),
        (ingress("web", number=81), "the Service has no such port"),
        (ingress("web", name="grpc"), "the Service has no such port"),
        (ingress("wbe", number=80), "no such Service"),
    ],
)
def test_backends_of_an_ingress(body: dict[str, Any], problem: str) -> None:
    objects = {listings.SERVICES: [named("web", spec=SERVICE)], listings.INGRESSES: [body]}
    (found,) = result("network", objects)["ingresses"]
    assert [it["problem"] for it in found["backends"]] == [problem]


def test_no_backend_is_called_missing_when_services_are_not_seen() -> None:
    objects = {listings.INGRESSES: [ingress("web", number=80)]}
    (found,) = result("network", objects, denied=[listings.SERVICES])["ingresses"]
    assert found["backends"][0]["problem"] is None


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, 2),
        ({"matchLabels": {"app": "web"}}, 1),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, 1),
        ({"matchLabels": {"app": "gone"}}, 0),
    ],
)
def test_pods_that_a_policy_selects(selector: dict[str, Any], selected: int) -> None:
    objects = {
        listings.PODS: [
            named("a", labels={"app": "web"}),
            named("b"),
            named("elsewhere", "other", labels={"app": "web"}),
            named("done", labels={"app": "web"}, status={"phase": "Succeeded"}),
        ],
        listings.NETWORK_POLICIES: [named("deny", spec={"podSelector": selector})],
    }
    (found,) = result("network", objects)["policies"]
    assert found["selected"] == selected


def test_storage_by_class_claim_and_volume() -> None:
    def volume(name: str, phase: str, size: str) -> dict[str, Any]:
        spec = {
            "capacity": {"storage": size},
            "storageClassName": "fast",
            "claimRef": {"namespace": "shop", "name": "data"},
        }
        return {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}}

    claim = {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}
    mounted = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    user = named("db-0", spec={"volumes": mounted}, status={"phase": "Running"})
    report = result(
        "storage",
        {
            listings.CLAIMS: [
                named(
                    "data", spec=claim, status={"phase": "Bound", "capacity": {"storage": "2Gi"}}
                ),
                named("waits", spec=claim, status={"phase": "Pending"}),
            ],
            listings.VOLUMES: [
                volume("one", "Bound", "2Gi"),
                volume("two", "Bound", "1Gi"),
                volume("left", "Released", "8Gi"),
            ],
            listings.STORAGE_CLASSES: [{"metadata": {"name": "slow"}, "provisioner": "x"}],
            listings.PODS: [user],
        },
    )
    assert [(it["name"], it["bytes"], it["used_by"]) for it in report["claims"]] == [
        ("data", 2 * 2**30, 1),
        ("waits", 2**30, 0),
    ]
    assert [it["name"] for it in report["volumes"] if it["orphaned"]] == ["left"]
    assert [(it["name"], it["volumes"], it["bound_bytes"]) for it in report["classes"]] == [
        ("slow", 0, 0),
        ("fast", 2, 3 * 2**30),
    ]

"""Plans and drains on any API server, real Kubernetes among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import kvestigate
from tests.conftest import Cluster
from tests.snapshot.objects import container, node
from tests.upstream.judge import Judge

FLAGS = ("--apply", "--i-understand-this-disrupts-workloads", "-o", "json")


def answered(kubeconfig: Path, *args: str) -> tuple[int, Any]:
    done = kvestigate(kubeconfig, *args)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def create_node(judge: Judge, name: str, pool: str, gpus: str) -> None:
    body = node(name, cpu="8", memory="32Gi", pods="110", gpu=gpus)
    judge.post("/api/v1/nodes", {"metadata": {"name": name, "labels": {"pool": pool}}})
    judge.merge(f"/api/v1/nodes/{name}/status", {"status": body["status"]})
    taints = {"spec": {"taints": None}}  # a node that has just come is taken for not ready
    judge.merge(f"/api/v1/nodes/{name}", taints)


def create_pod(judge: Judge, namespace: str, name: str, on: str, gpus: str = "1") -> None:
    asked = container(cpu="1", gpu=gpus)
    asked["resources"]["limits"] = {"nvidia.com/gpu": gpus}
    meta = {"name": name, "labels": {"app": name}}
    pods = f"/api/v1/namespaces/{namespace}/pods"
    judge.post(pods, {"metadata": meta, "spec": {"nodeName": on, "containers": [asked]}})
    ready = [{"type": "Ready", "status": "True"}]
    judge.merge(f"{pods}/{name}/status", {"status": {"phase": "Running", "conditions": ready}})


def test_a_drain_respects_budgets_and_goes_on_when_they_do(
    cluster: Cluster, judge: Judge, namespace: str
) -> None:
    config, name = cluster.admin_kubeconfig(), f"{namespace}-n"
    create_node(judge, name, namespace, "8")
    for pod in ("plain", "guarded"):
        create_pod(judge, namespace, pod, name)
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    selector = {"matchLabels": {"app": "guarded"}}
    made = judge.post(
        budgets, {"metadata": {"name": "guard"}, "spec": {"minAvailable": 1, "selector": selector}}
    )
    counted = {"observedGeneration": made["metadata"]["generation"], "currentHealthy": 1}
    status = {**counted, "desiredHealthy": 1, "expectedPods": 1, "disruptionsAllowed": 0}
    judge.merge(f"{budgets}/guard/status", {"status": status})

    # Nobody here ends pods: without a grace period they are gone at once.
    drain = ("node", "drain", name, "--grace-period", "0")
    code, refused = answered(config, *drain, *FLAGS)
    assert (code, refused["applied"], refused["pods"]) == (2, False, [])
    assert {it["name"]: it["flag"] for it in refused["refused"]} == {
        "plain": "--force",
        "guarded": "--force",
    }
    assert "unschedulable" not in judge.get(f"/api/v1/nodes/{name}")["spec"]

    forced = (*drain, "--force")  # no controller recreates them
    code, done = answered(config, *forced, "--timeout", "2s", *FLAGS)
    assert {it["name"]: it["outcome"] for it in done["pods"]} == {
        "plain": "gone",
        "guarded": "blocked",
    }
    assert code == 6
    assert judge.get(f"/api/v1/nodes/{name}")["spec"]["unschedulable"] is True

    judge.merge(f"{budgets}/guard/status", {"status": {"disruptionsAllowed": 1}})
    code, done = answered(config, *forced, *FLAGS)
    assert (code, [it["outcome"] for it in done["pods"]]) == (0, ["gone"])


@pytest.mark.parametrize(
    ("options", "code", "counts"),
    [
        (("--gpu", "1", "--replicas", "11"), 0, (3, 8)),
        (("--gpu", "3", "--replicas", "3"), 0, (1, 2)),
        (("--gpu", "1", "--replicas", "12"), 1, None),
    ],
)
def test_a_plan_counts_what_is_free(
    cluster: Cluster,
    judge: Judge,
    namespace: str,
    options: tuple[str, ...],
    code: int,
    counts: tuple[int, int] | None,
) -> None:
    first, second = f"{namespace}-a", f"{namespace}-b"
    for name in (first, second):
        create_node(judge, name, namespace, "8")
    create_pod(judge, namespace, "taken", first, gpus="5")
    only = ("--label", f"pool={namespace}", "-o", "json")
    found, plan = answered(cluster.admin_kubeconfig(), "plan", *options, *only)
    assert found == code
    for proposal in plan["proposals"]:  # there is one way only, whatever the strategy
        assert tuple(proposal["placement"].get(name, 0) for name in (first, second)) == counts
    assert len(plan["proposals"]) == (0 if counts is None else 3)


def test_what_is_too_big_is_told_with_the_largest_block(
    cluster: Cluster, judge: Judge, namespace: str
) -> None:
    create_node(judge, f"{namespace}-a", namespace, "7")
    create_node(judge, f"{namespace}-b", namespace, "4")
    only = ("--label", f"pool={namespace}", "-o", "json")
    code, plan = answered(cluster.admin_kubeconfig(), "plan", "--gpu", "12", *only)
    assert (code, plan["problem"]) == (
        1,
        f"No node has 12 free GPUs. The largest free block is 7 ({namespace}-a).",
    )

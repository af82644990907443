"""What becomes of each pod: kubectl's rules, budgets, and where the pod can start again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.policy import PodDisruptionBudget
from kvestigate.nodeops.fates import Allowed, Fate, Verdict, fates, new_homes
from kvestigate.snapshot.scheduling import Situation, Workload
from tests.snapshot.objects import node

EVICT, STAY, REFUSE = Verdict.EVICT, Verdict.STAY, Verdict.REFUSE
NOTHING = Allowed()
ALL = Allowed(system=True, uncontrolled=True, data=True)


def owned(kind: str, uid: str = "r") -> dict[str, Any]:
    return {"ownerReferences": [{"kind": kind, "name": uid, "uid": uid, "controller": True}]}


REPLICAS = owned("ReplicaSet")


def pod(metadata: Any = None, phase: str = "Running", name: str = "p", **spec: Any) -> Pod:
    meta = {"name": name, "uid": name, "namespace": "shop", "labels": {"app": "web"}}
    body = {
        "metadata": {**meta, **(REPLICAS if metadata is None else metadata)},
        "spec": {"nodeName": "a", "containers": [{"name": "c"}], **spec},
        "status": {"phase": phase},
    }
    return msgspec.convert(body, Pod)


def workload(uid: str, owner: str = "", **given: Any) -> Workload:
    meta = {"name": uid, "uid": uid} | (owned(owner, "web") if owner else {})
    return msgspec.convert({"metadata": meta, **given}, Workload)


def budget(name: str = "guard", allowed: int = 0, **given: Any) -> PodDisruptionBudget:
    body = {
        "metadata": {"name": name, "namespace": given.pop("namespace", "shop")},
        "spec": {"selector": given.pop("selector", {"matchLabels": {"app": "web"}}), **given},
        "status": {"disruptionsAllowed": allowed, "desiredHealthy": 2, "currentHealthy": 1},
    }
    return msgspec.convert(body, PodDisruptionBudget)


def situation(*pods: Pod, unread: Any = None, **listed: Any) -> Situation:
    known = {
        "nodes": [msgspec.convert(node(name, pods="9"), Node) for name in ("a", "b")],
        "pods": pods,
        "replicasets": [workload("r", "Deployment", spec={"replicas": 9})],
        "daemonsets": [workload("d")],
        **listed,
    }
    kept = {name: each for name, each in known.items() if name not in (unread or {})}
    return Situation(datetime(2026, 1, 1, tzinfo=UTC), kept, unread or {})


def fate(one: Pod, allowed: Allowed = NOTHING, **listed: Any) -> Fate:
    return fates([one], situation(one, **listed), allowed, "a")[0]


STATIC = {"annotations": {"kubernetes.io/config.mirror": "x"}}
LEAVING = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
SCRATCH = [{"name": "tmp", "emptyDir": {}}]


@pytest.mark.parametrize(
    ("one", "verdict", "reason"),
    [
        (pod(), EVICT, "Deployment web recreates it; fits on b"),
        (pod({}), REFUSE, "no controller recreates it: it would be gone for good"),
        (pod(owned("ReplicaSet", "x")), REFUSE, "ReplicaSet x does not exist any more"),
        (pod(volumes=SCRATCH), REFUSE, "the data of its emptyDir volume tmp is lost"),
        (pod(owned("DaemonSet", "d")), STAY, "DaemonSet d runs a pod on every node"),
        (pod(owned("DaemonSet", "x")), REFUSE, "DaemonSet x does not exist any more"),
        (pod(STATIC), STAY, "static pod"),
        (pod(LEAVING), STAY, "already terminating"),
        (pod({}, "Succeeded"), STAY, "completed"),
        (pod({}, "Failed"), STAY, "completed"),
        (pod(REPLICAS | {"namespace": "kube-system"}), STAY, "in a system namespace"),
        (pod(owned("RayJob")), EVICT, "evicted; whether RayJob r recreates it is unknown"),
        (
            pod(nodeSelector={"gpu": "yes"}),
            EVICT,
            "Deployment web recreates it; stays Pending: no node fits",
        ),
    ],
)
def test_each_pod_has_its_fate(one: Pod, verdict: Verdict, reason: str) -> None:
    found = fate(one)
    assert found.verdict is verdict
    assert found.reason.startswith(reason)
    forced = fate(one, ALL)
    assert forced.verdict is (STAY if reason.startswith(_ALWAYS) else EVICT)


_ALWAYS = ("DaemonSet d", "static", "already", "completed")


@pytest.mark.parametrize(
    ("one", "flag", "allowed"),
    [
        (pod({}), "--force", Allowed(uncontrolled=True)),
        (pod(volumes=SCRATCH), "--delete-emptydir-data", Allowed(data=True)),
    ],
)
def test_a_refusal_names_the_flag_that_allows_it(one: Pod, flag: str, allowed: Allowed) -> None:
    assert fate(one).flag == flag
    assert fate(one, allowed).verdict is EVICT


def test_a_controller_that_cannot_be_read_is_not_taken_for_missing() -> None:
    found = fate(pod(), unread={"replicasets": "forbidden"})
    assert found.verdict is EVICT
    assert "whether ReplicaSet r exists is unknown: listing replicasets failed" in found.reason
    hidden = fate(pod(), unread={"nodes": "forbidden"})
    assert "where it fits is unknown: listing nodes" in hidden.reason


PAIR = (pod(name="a"), pod(name="b"))


@pytest.mark.parametrize(
    ("guard", "said"),
    [
        (budget(), "PodDisruptionBudget guard allows none until more than 2 pods are healthy"),
        (budget(allowed=1), "PodDisruptionBudget guard allows 1 of 2 evictions at a time"),
        (budget(allowed=2), ""),
        (budget(selector={"matchLabels": {"app": "db"}}), ""),
        (budget(selector={}), "PodDisruptionBudget guard allows none"),
        (budget(selector=None), ""),
        (budget(namespace="other"), ""),
        (budget(unhealthyPodEvictionPolicy="AlwaysAllow"), ""),
    ],
)
def test_what_a_budget_lets_go(guard: PodDisruptionBudget, said: str) -> None:
    there = situation(*PAIR, poddisruptionbudgets=[guard])
    for found in fates(PAIR, there, Allowed()):
        assert found.blocked.startswith(said)
        assert bool(found.blocked) == bool(said)


def test_two_budgets_block_a_pod_for_good_and_unread_ones_are_unknown() -> None:
    twice = fate(pod(), poddisruptionbudgets=[budget("one", 1), budget("two", 1)])
    assert twice.blocked.startswith("PodDisruptionBudgets one, two both select it")
    hidden = fate(pod(), unread={"poddisruptionbudgets": "forbidden"})
    assert hidden.blocked == "budgets are unknown: forbidden"


def test_pods_that_fit_one_by_one_may_not_fit_together() -> None:
    big: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "5"}}}]}
    pods = (pod(name="a", **big), pod(name="b", **big))
    nodes = [msgspec.convert(node(name, cpu="8", pods="9"), Node) for name in ("a", "b")]
    found = fates(pods, situation(*pods, nodes=nodes), Allowed(), "a")
    assert [each.reason.partition("; ")[2] for each in found] == [
        "fits on b",
        "fits on b, but not together with the other pods",
    ]


def test_where_a_pod_with_claims_fits_is_unknown() -> None:
    """Its replacement may get claims, and devices, of its own."""
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    one = pod(resourceClaims=claims)
    assert (
        "unknown: which devices its claims would get" in new_homes([one], situation(one), "a")["p"]
    )

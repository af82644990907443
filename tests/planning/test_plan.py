"""Plans for clusters that are known."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from kvestigate.errors import InputError, UsageError
from kvestigate.planning.nodes import broken_gpus
from kvestigate.planning.plan import Plan, PlanOptions, claimable_note, demand_of, solved
from kvestigate.planning.rendering import plan_blocks
from kvestigate.render.plain import to_text
from kvestigate.snapshot import listings
from kvestigate.snapshot.exporters import GpuReading
from kvestigate.snapshot.sickness import Sensors
from tests.health.snapshots import snapshot
from tests.snapshot.objects import Object, as_node, as_pod, container, node, pod

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def gpu_node(name: str, gpus: int = 8, **spec: Any) -> Object:
    labels = {"kubernetes.io/hostname": name, **spec.pop("labels", {})}
    body = node(name, labels=labels, cpu="32", memory="256Gi", pods="110", gpu=str(gpus))
    return {**body, "spec": spec}


def planned(nodes: list[Object], pods: list[Object] | None = None, **options: Any) -> Plan:
    demand = demand_of(PlanOptions(**options), "default")
    return solved(
        demand,
        [as_node(it) for it in nodes],
        [as_pod(it) for it in pods or []],
        options.get("strategy", ""),
        when=NOW,
        server="test",
    )


def placements(plan: Plan) -> dict[str, dict[str, int]]:
    return {it.strategy: it.placement for it in plan.proposals}


def offering(node: str, kind: str, count: int) -> Object:
    """A ResourceSlice."""
    devices = [
        {"name": f"{kind}-{at}", "attributes": {"type": {"string": kind}}} for at in range(count)
    ]
    spec = {"driver": "gpu.nvidia.com", "pool": {"name": f"{node}-{kind}"}, "nodeName": node}
    return {"metadata": {"name": f"{node}-{kind}"}, "spec": {**spec, "devices": devices}}


@pytest.mark.parametrize(
    ("slices", "said"),
    [
        ([], ""),
        ([offering("a", "gpu", 1)], "1 GPU is offered to ResourceClaims instead"),
        (
            [offering("a", "gpu", 4), offering("b", "mig", 6)],
            "4 GPUs and 6 partitions are offered to ResourceClaims instead",
        ),
        (None, "how many are offered to ResourceClaims is unknown: cannot list resourceslices"),
    ],
)
def test_gpus_that_only_claims_get_are_named_where_gpus_do_not_fit(
    slices: list[Object] | None, said: str
) -> None:
    given = {} if slices is None else {listings.DEVICE_SLICES: slices}
    denied = (listings.DEVICE_SLICES,) if slices is None else ()
    note = claimable_note(snapshot(given, denied=denied))
    assert said in note
    assert bool(note) == bool(said)
    for gpus, shown in ((9, bool(said)), (1, False)):
        demand = demand_of(PlanOptions(gpu=gpus), "default")
        nodes = [as_node(gpu_node("a"))]
        plan = solved(demand, nodes, [], when=NOW, server="test", elsewhere=note)
        assert ("only GPUs of device plugins count" in to_text(plan_blocks(plan))) == shown
        assert plan.notes == ((note,) if shown else ())


@pytest.mark.parametrize(("option", "written"), [("cpu", "many"), ("memory", "12Q")])
def test_an_amount_that_is_none_is_named_with_its_option(option: str, written: str) -> None:
    with pytest.raises(InputError, match=rf"^--{option}: quantity '{written}'"):
        planned([gpu_node("a")], None, **{option: written})


def test_the_strategies_stand_side_by_side() -> None:
    taken = pod("p", container(gpu="6"), on="b")
    plan = planned([gpu_node("a"), gpu_node("b")], [taken], gpu=1, replicas=4)
    assert plan.fits
    assert placements(plan) == {
        "bestfit": {"b": 2, "a": 2},
        "spread": {"a": 2, "b": 2},
        "pack": {"a": 4},
    }
    assert [(it.name, it.slots) for it in plan.nodes] == [("a", 8), ("b", 2)]
    only = planned([gpu_node("a")], gpu=1, strategy="pack")
    assert list(placements(only)) == ["pack"]


@pytest.mark.parametrize(
    ("options", "problem", "ways"),
    [
        (
            {"gpu": 12},
            "No node has 12 free GPUs. The largest free block is 7 (b). "
            "Even an empty node has only 8.",
            (),
        ),
        (
            {"cpu": "64", "memory": "1Ti"},
            "No node has 64 free CPUs. The largest free block is 32 CPUs (a). "
            "No node has 1.0 TiB of free memory. "
            "The largest free block is 256.0 GiB of memory (a).",
            (),
        ),
        (
            {"gpu": 1, "replicas": 20},
            "Only 11 of 20 replicas fit on 2 usable nodes. The first resource to run out: "
            "GPUs on 2 nodes.",
            ("8 more replicas would fit if the cordoned nodes are uncordoned.",),
        ),
        (
            {"gpu": 1, "replicas": 3, "one_per_node": True},
            "Only 2 of 3 replicas fit on 2 usable nodes.",
            (
                "1 more replica would fit if the cordoned nodes are uncordoned.",
                "1 more replica would fit if a node may run more than one replica.",
            ),
        ),
        (
            {"gpu": 1, "replicas": 9, "single_node": True},
            "Only 7 of 9 replicas fit on one node. The first resource to run out: GPUs on 2 nodes.",
            (
                "2 more replicas would fit if the replicas may run on different nodes.",
                "1 more replica would fit if the cordoned nodes are uncordoned.",
            ),
        ),
        (
            {"gpu": 1, "labels": ("pool=x",)},
            "None of the 3 nodes can be used: labels do not match (3).",
            ("1 more replica would fit if nodes with other labels may be used.",),
        ),
        (
            {"gpu": 5, "replicas": 1, "exclude": ("b",)},
            "No node has 5 free GPUs. The largest free block is 4 (a).",
            (
                "1 more replica would fit if the excluded nodes may be used.",
                "1 more replica would fit if the cordoned nodes are uncordoned.",
            ),
        ),
    ],
)
def test_what_does_not_fit_is_explained(
    options: dict[str, Any], problem: str, ways: tuple[str, ...]
) -> None:
    nodes = [gpu_node("a"), gpu_node("b"), gpu_node("c", unschedulable=True)]
    pods = [pod("p", container(gpu="4"), on="a"), pod("q", container(gpu="1"), on="b")]
    plan = planned(nodes, pods, **options)
    assert (plan.fits, plan.proposals) == (False, ())
    assert plan.problem == problem
    assert plan.ways_out == ways


def test_the_free_partitions_stand_beside_the_replicas_that_fit() -> None:
    resource = "nvidia.com/mig-1g.10gb"
    divided = gpu_node("a", 0)
    divided["status"]["allocatable"][resource] = "5"
    manifest = f"""
kind: Deployment
spec:
  replicas: 9
  template:
    spec:
      containers: [{{name: main, resources: {{limits: {{{resource}: 1}}}}}}]
"""
    plan = planned([divided], manifest=manifest)
    assert (plan.fits, plan.fitting) == (False, 5)
    shown = to_text(plan_blocks(plan))
    assert "FREE 1G.10GB" in shown
    assert re.search(r"^a +5 .* 5 ", shown, re.M)


def test_gpus_with_too_little_memory_are_left_out() -> None:
    label = "nvidia.com/gpu.memory"
    large, small = (
        gpu_node(name, labels={label: mib}) for name, mib in (("a", "81559"), ("b", "23034"))
    )
    plan = planned([large, small, gpu_node("c")], gpu=8, gpu_memory="40Gi", replicas=2)
    assert {it.name: it.barred for it in plan.nodes} == {
        "a": "",
        "b": "GPU memory too small: 22.5 GiB",
        "c": "GPU memory too small: unknown",
    }
    assert "1 more replica would fit if GPUs with less memory would do." in plan.ways_out


def test_a_mig_profile_is_asked_for_by_its_name() -> None:
    divided = gpu_node("a", 0)
    divided["status"]["allocatable"]["nvidia.com/mig-2g.20gb"] = "3"
    plan = planned([divided, gpu_node("b")], mig="2g.20gb", replicas=3)
    assert placements(plan)["pack"] == {"a": 3}
    short = planned([divided, gpu_node("b")], mig="1g.10gb")
    assert "No node has 1 free nvidia.com/mig-1g.10gb." in short.problem


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mig": "small"}, "--mig small: is not a MIG profile"),
        ({"mig": "1g.10gb", "gpu_memory": "1Gi"}, "--gpu-memory and --mig cannot be combined"),
        ({"cpu": "1", "gpu_memory": "1Gi"}, "--gpu-memory: no GPUs are requested"),
        ({"gpu": 1, "gpu_memory": "-1Gi"}, "--gpu-memory -1Gi: is not more than 0"),
    ],
)
def test_what_cannot_be_asked_of_gpus(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        planned([gpu_node("a")], **options)


def test_a_node_with_a_broken_gpu_is_avoided() -> None:
    fallen = Sensors(xid=79)
    broken = broken_gpus(
        [
            GpuReading("GPU-0", "a", "0", 0, "", "", "", sensors=fallen),
            GpuReading("GPU-1", "b", "0", 0, "ml", "p", "c", sensors=fallen),
            GpuReading("GPU-2", "c", "0", 0, "", "", "", sensors=Sensors(throttles=0x40)),
        ]
    )
    nodes = [as_node(gpu_node(name)) for name in "abc"]

    def plan(**options: Any) -> Plan:
        demand = demand_of(PlanOptions(**options), "default")
        return solved(demand, nodes, [], when=NOW, server="test", broken=broken)

    barred = {it.name: it.barred for it in plan(gpu=8, replicas=3).nodes}
    assert barred == {
        "a": "has a broken GPU: GPU 0: Xid 79: the GPU has fallen off the bus",
        "b": "",
        "c": "",
    }
    assert (
        "1 more replica would fit if the broken GPUs are repaired."
        in plan(gpu=8, replicas=3).ways_out
    )
    assert plan(cpu="1", replicas=96).fits


def test_what_is_there_but_not_together() -> None:
    nodes = [gpu_node("a"), gpu_node("b")]
    pods = [pod("p", container(gpu="8"), on="a"), pod("q", container(cpu="30"), on="b")]
    plan = planned(nodes, pods, gpu=1, cpu="8")
    assert "8 CPUs and 1 GPU" in plan.problem
    assert plan.problem.endswith("free at the same time.")


TAINT = {"key": "dedicated", "value": "infra", "effect": "NoSchedule"}
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def test_taints_bar_and_those_of_devices_do_not() -> None:
    nodes = [gpu_node("a", taints=[TAINT]), gpu_node("b", taints=[GPU_TAINT])]
    plan = planned(nodes, gpu=1)
    assert [it.barred for it in plan.nodes] == ["tainted dedicated=infra:NoSchedule", ""]
    assert [it.barred for it in planned(nodes, cpu="1").nodes] == [
        "tainted dedicated=infra:NoSchedule",
        "tainted nvidia.com/gpu=present:NoSchedule",
    ]


MANIFEST = """
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: {replicas}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers:
      - name: main
        resources: {{requests: {{cpu: 4}}, limits: {{nvidia.com/gpu: 1}}}}
      {rule}
---
kind: Service
metadata: {{name: web}}
"""


def from_manifest(rule: str, replicas: int = 4, **options: Any) -> dict[str, Any]:
    return {"manifest": MANIFEST.format(rule=rule, replicas=replicas), **options}


def zoned() -> list[Object]:
    return [
        gpu_node("a", labels={"zone": "1"}),
        gpu_node("b", labels={"zone": "1"}),
        gpu_node("c", labels={"zone": "2"}, gpus=2),
        gpu_node("d"),
    ]


SELECTOR = "labelSelector: {matchLabels: {app: web}}"
ANTI = (
    "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
    "[{topologyKey: KEY, " + SELECTOR + "}]}}"
)
NEAR = ANTI.replace("podAntiAffinity", "podAffinity")
SPREAD = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, " + SELECTOR + "}]"
AFFINITY = (
    "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
    '{nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: ["2"]}]}]}}}'
)


@pytest.mark.parametrize(
    ("rule", "fitting"),
    [
        ("", 26),
        ('nodeSelector: {zone: "1"}', 16),
        (AFFINITY, 2),
        (SPREAD, 5),  # two in zone 2, one more in zone 1
        (ANTI.replace("KEY", "kubernetes.io/hostname"), 4),
        (ANTI.replace("KEY", "zone"), 2),
    ],
)
def test_the_rules_of_a_manifest_are_honoured(rule: str, fitting: int) -> None:
    assert planned(zoned(), **from_manifest(rule, 100)).fitting == fitting
    plan = planned(zoned(), **from_manifest(rule, fitting))
    assert plan.fits
    assert [sum(it.placement.values()) for it in plan.proposals] == [fitting] * 3


def test_pods_that_are_there_count_for_the_rules() -> None:
    there = pod("web-1", container(), on="a")
    there["metadata"]["labels"] = {"app": "web"}
    anti = planned(zoned(), [there], **from_manifest(ANTI.replace("KEY", "zone"), 1))
    assert [it.barred for it in anti.nodes] == ["pod anti-affinity forbids it"] * 2 + ["", ""]
    spread = planned(zoned(), [there], **from_manifest(SPREAD, 1))
    assert placements(spread)["pack"] == {"c": 1}


@pytest.mark.parametrize(
    ("key", "replicas", "there", "pack"),
    [
        ("zone", 12, "", {"a": 8, "b": 4}),  # the first may choose, the others follow it
        ("zone", 17, "", None),
        ("zone", 2, "c", {"c": 2}),
        ("zone", 3, "c", None),
        ("zone", 1, "d", None),  # who is in no zone attracts nobody to one
        ("kubernetes.io/hostname", 8, "", {"a": 8}),
        ("kubernetes.io/hostname", 9, "", None),
    ],
)
def test_replicas_go_where_the_pods_are_that_they_must_be_near(
    key: str, replicas: int, there: str, pack: dict[str, int] | None
) -> None:
    others = [pod("db", container(), on=there)] if there else []
    for other in others:
        other["metadata"]["labels"] = {"app": "db"}
    rule = NEAR.replace("KEY", key)
    if there:
        rule = rule.replace("app: web", "app: db")
    plan = planned(zoned(), others, **from_manifest(rule, replicas))
    assert placements(plan).get("pack") == pack


def test_nothing_goes_anywhere_when_nobody_is_there_to_be_near() -> None:
    plan = planned(zoned(), **from_manifest(NEAR.replace("app: web", "app: db"), 1))
    assert {it.barred for it in plan.nodes} == {"pod affinity finds no matching pod"}
    elsewhere = NEAR.replace("topologyKey: KEY", "topologyKey: zone, namespaces: [other]")
    assert not planned(zoned(), **from_manifest(elsewhere, 1)).fits


def test_a_toleration_of_a_manifest_opens_nodes() -> None:
    rule = "tolerations: [{key: dedicated, operator: Exists}]"
    tainted = [gpu_node("a", taints=[TAINT])]
    assert planned(tainted, **from_manifest(rule, 1)).fits
    assert not planned(tainted, **from_manifest("", 1)).fits


@pytest.mark.parametrize(
    ("rule", "notes"),
    [
        ("", []),
        (SPREAD, []),
        (
            SPREAD.replace("maxSkew", "whenUnsatisfiable: ScheduleAnyway, maxSkew"),
            ["topology spread with ScheduleAnyway"],
        ),
        (
            "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
            "[{weight: 1, preference: {}}]}}",
            ["preferred node affinity"],
        ),
        (
            "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
            "[{weight: 1, podAffinityTerm: {topologyKey: zone}}]}}",
            ["preferred pod anti-affinity"],
        ),
    ],
)
def test_wishes_are_named_and_left_out(rule: str, notes: list[str]) -> None:
    plan = planned(zoned(), **from_manifest(rule, 1))
    assert plan.fits
    assert list(plan.notes) == [f"{note} is ignored: it is not a hard rule" for note in notes]


def test_options_win_over_the_manifest() -> None:
    plan = planned(zoned(), **from_manifest("", 4), replicas=2, cpu="16")
    assert (plan.replicas, plan.need) == (2, {"cpu": 16000, "nvidia.com/gpu": 1, "pods": 1})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, UsageError, "no resources are given for a replica"),
        ({"cpu": "-1"}, UsageError, "cpu: the amount is negative"),
        ({"cpu": "x"}, InputError, "'x'"),
        ({"gpu": 1, "strategy": "luck"}, UsageError, "no strategy 'luck'"),
        ({"manifest": "kind: Service"}, InputError, "has 0 workloads"),
        ({"manifest": "kind: Deployment\nspec: 3"}, InputError, "Expected `object`"),
        (
            {"gpu": 1, "replicas": 2, "one_per_node": True, "single_node": True},
            UsageError,
            "cannot be combined",
        ),
        (from_manifest(SPREAD, single_node=True), InputError, "zone, --single-node"),
        (
            from_manifest(NEAR.replace("[{", "[{topologyKey: zone}, {")),
            InputError,
            "more than one required podAffinity term is not supported",
        ),
    ],
)
def test_what_cannot_be_planned_is_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        planned(zoned(), **options)


def test_a_large_fleet_is_planned_for_completely() -> None:
    nodes = [gpu_node(f"n{index:04}") for index in range(5000)]
    plan = planned(nodes, gpu=3, replicas=10_000)
    assert [(it.strategy, it.nodes) for it in plan.proposals] == [
        ("bestfit", 5000),
        ("spread", 5000),
        ("pack", 5000),
    ]

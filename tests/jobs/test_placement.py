"""Which nodes a task may run on."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.errors import InputError
from kvestigate.jobs.tasks.parse import parse_task
from kvestigate.jobs.tasks.placement import (
    Placement,
    accelerator_matches,
    named,
    needs_nodes,
    place,
)
from kvestigate.kube.views.core import Node, NodeSpec, NodeStatus, Taint
from kvestigate.kube.views.meta import Metadata

NODES = [
    {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "karpenter.sh/capacity-type": "spot"},
    {"cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-spot": "true"},
    {"node.kubernetes.io/instance-type": "p3.8xlarge"},
]


def placed(**resources: Any) -> Placement:
    return place(parse_task({"run": "x", "resources": resources}), nodes(*NODES))


def nodes(*labels: dict[str, str], **allocatable: str) -> list[Node]:
    size = {key.replace("_", "-"): amount for key, amount in allocatable.items()}
    if "gpus" in size:
        size["nvidia.com/gpu"] = size.pop("gpus")
    return [Node(Metadata(labels=each), status=NodeStatus(allocatable=size)) for each in labels]


@pytest.mark.parametrize(
    ("name", "value", "matches"),
    [
        ("A100", "NVIDIA-A100-SXM4-80GB", True),
        ("A100-80GB", "NVIDIA-A100-SXM4-80GB", True),
        ("A100-80GB", "NVIDIA-A100-SXM4-40GB", False),
        ("V100", "nvidia-tesla-v100", True),
        ("L4", "NVIDIA-L40S", False),
        ("l40s", "NVIDIA-L40S", True),
        ("T4", "Tesla-T4", True),
        ("RTXPRO6000", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", True),
        ("RTX6000-Ada", "NVIDIA-RTX-6000-Ada-Generation", True),
        ("RTX6000", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", False),
    ],
)
def test_accelerators_are_known_by_their_labels(name: str, value: str, matches: bool) -> None:
    assert accelerator_matches(name, value) is matches


def test_the_first_choice_that_is_there_is_taken() -> None:
    found = placed(accelerators=["H100:8", "L4:2", "A100:1"])
    assert found.resources.accelerator is not None
    assert found.resources.accelerator.name == "L4"
    assert found.terms == ((("cloud.google.com/gke-accelerator", ("nvidia-l4",)),),)


def test_spot_nodes_are_those_of_any_cloud() -> None:
    found = placed(use_spot=True)
    assert [term[0][0] for term in found.terms] == [
        "cloud.google.com/gke-spot",
        "karpenter.sh/capacity-type",
    ]
    assert "cloud.google.com/gke-spot" in found.tolerations


def test_all_conditions_hold_together() -> None:
    found = placed(accelerators="A100", use_spot=True)
    assert all(len(term) == 2 for term in found.terms)
    assert len(found.terms) == 2


@pytest.mark.parametrize(
    ("resources", "message", "hint"),
    [
        ({"accelerators": "H100"}, "no node has H100", "NVIDIA-A100-SXM4-80GB, nvidia-l4"),
        ({"accelerators": ["H100", "T4"]}, "no candidate fits", "NVIDIA-A100"),
    ],
)
def test_what_is_not_there_is_answered_with_what_is(
    resources: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        placed(**resources)
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("resources", "needed"),
    [
        ({}, False),
        ({"accelerators": 1}, False),
        ({"accelerators": "T4"}, True),
        ({"accelerators": [1, 2]}, True),
        ({"disk_size": 100}, True),
        ({"use_spot": True}, True),
    ],
)
def test_nodes_are_only_read_when_they_matter(resources: dict[str, Any], needed: bool) -> None:
    assert bool(needs_nodes(parse_task({"run": "x", "resources": resources}))) is needed


@pytest.mark.parametrize(
    ("resources", "ignored"),
    [
        (
            {"instance_type": "m5"},
            "resources.instance_type: no node is of type m5 (instance types here: p3.8xlarge)",
        ),
        (
            {"use_spot": True},
            "resources.use_spot: no node of this cluster is a spot instance",
        ),
        (
            {"disk_size": 500},
            "resources.disk_size: no node has 500Gi of ephemeral storage",
        ),
    ],
)
def test_a_wish_that_no_node_fulfils_is_ignored_and_named(
    resources: dict[str, Any], ignored: str
) -> None:
    task = parse_task({"run": "x", "resources": {"accelerators": 1, **resources}})
    placement = place(task, nodes(NODES[2], ephemeral_storage="100Gi"))
    assert placement.ignored == (ignored,)
    assert placement.terms == ()
    assert (placement.resources.disk, placement.resources.use_spot) == ("", False)


def test_wishes_are_ignored_where_nodes_are_unknown_and_a_named_gpu_is_refused() -> None:
    wishes = {"use_spot": True, "instance_type": "m5", "disk_size": 5}
    placement = place(parse_task({"run": "x", "resources": wishes}), None)
    assert len(placement.ignored) == 2
    assert placement.resources.disk == "5Gi"
    with pytest.raises(InputError, match="listing nodes is forbidden"):
        place(parse_task({"run": "x", "resources": {"accelerators": "A100"}}), None)


def chosen(resources: dict[str, Any], cluster: list[Node], num_nodes: int = 1) -> list[str]:
    """What is taken and what comes after it."""
    task = parse_task({"run": "x", "num_nodes": num_nodes, "resources": resources})
    taken = place(task, cluster)
    return [named(each.resources) for each in (taken, *taken.later)]


A100, L4 = ({"skypilot.co/accelerator": name} for name in ("A100", "L4"))


@pytest.mark.parametrize(
    ("resources", "num_nodes", "expected"),
    [
        ({"accelerators": ["A100:16", "A100:8", "L4:4"]}, 1, ["A100:8", "L4:4"]),
        ({"accelerators": ["A100:8", "L4:4"]}, 2, ["L4:4"]),
        ({"any_of": [{"cpus": 512}, {"cpus": 8}]}, 1, ["8 CPUs"]),
        ({"ordered": [{"memory": "4Ti"}, {"accelerators": "L4"}]}, 1, ["L4:1"]),
    ],
)
def test_a_choice_that_no_node_can_ever_fit_is_skipped(
    resources: dict[str, Any], num_nodes: int, expected: list[str]
) -> None:
    size = {"cpu": "64", "memory": "256Gi", "gpus": "8"}
    assert chosen(resources, nodes(A100, L4, **size), num_nodes) == expected


def test_why_choices_were_skipped_is_told() -> None:
    task = parse_task({"run": "x", "resources": {"accelerators": ["H100:8", "A100:16", "L4:1"]}})
    cluster = nodes(A100, L4, gpus="8")
    assert place(task, cluster).skipped == (
        "resources.accelerators: no node has H100",
        "resources: A100:16: no node can fit it, even with all nodes empty",
    )
    only = parse_task({"run": "x", "resources": {"accelerators": ["A100:16", "L4:9"]}})
    with pytest.raises(InputError, match=r"A100:16: no node can fit.*L4:9: no node can fit"):
        place(only, cluster)


@pytest.mark.parametrize(
    ("taint", "expected"),
    [
        (Taint("team", "x", "NoSchedule"), ["8 CPUs"]),
        (Taint("team", "x", "PreferNoSchedule"), ["32 CPUs", "8 CPUs"]),
        (Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"), ["32 CPUs", "8 CPUs"]),
    ],
)
def test_nodes_with_taints_that_last_have_no_room(taint: Taint, expected: list[str]) -> None:
    size = NodeStatus(allocatable={"cpu": "64"})
    small = NodeStatus(allocatable={"cpu": "16"})
    cluster = [Node(spec=NodeSpec(taints=(taint,)), status=size), Node(status=small)]
    assert chosen({"any_of": [{"cpus": 32}, {"cpus": 8}]}, cluster) == expected

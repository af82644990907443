"""Which nodes a task may run on."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.errors import InputError
from kvestigate.jobs.tasks.parse import parse_task
from kvestigate.jobs.tasks.placement import Placement, accelerator_matches, needs_nodes, place

NODES = [
    {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "karpenter.sh/capacity-type": "spot"},
    {"cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-spot": "true"},
    {"node.kubernetes.io/instance-type": "p3.8xlarge"},
]


def placed(**resources: Any) -> Placement:
    return place(parse_task({"run": "x", "resources": resources}), NODES)


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
        ({"instance_type": "m5"}, "no node is of type m5", "p3.8xlarge"),
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
        ({"use_spot": True}, True),
    ],
)
def test_nodes_are_only_read_when_they_matter(resources: dict[str, Any], needed: bool) -> None:
    assert bool(needs_nodes(parse_task({"run": "x", "resources": resources}))) is needed

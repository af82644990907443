"""What has to be there first comes first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kvestigate.manifests.model import Manifest
from kvestigate.manifests.order import stages

IN_ORDER = [
    ("v1", "Namespace"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("v1", "Secret"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "Service"),
    ("apps/v1", "Deployment"),
    ("networking.k8s.io/v1", "Ingress"),
]


def manifest(api_version: str, kind: str, name: str = "a") -> Manifest:
    return Manifest(
        {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}, f"{kind}:{name}"
    )


@given(st.permutations(IN_ORDER))
def test_the_order_given_does_not_matter(given: list[tuple[str, str]]) -> None:
    found = stages(manifest(*it) for it in given)
    assert [it.kind for stage in found for it in stage] == [kind for _, kind in IN_ORDER]
    assert len(found) == len(IN_ORDER)


def test_a_kind_of_the_same_name_in_another_group_is_something_else() -> None:
    found = stages([manifest("serving.example.org/v1", "Service"), manifest("batch/v1", "Job")])
    assert [[it.api_version for it in stage] for stage in found] == [
        ["batch/v1"],
        ["serving.example.org/v1"],
    ]


def test_in_a_stage_the_order_given_is_kept() -> None:
    found = stages(manifest("v1", "ConfigMap", name) for name in "cab")
    assert [it.name for it in found[0]] == ["c", "a", "b"]

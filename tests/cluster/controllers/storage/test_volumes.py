"""Which volume a claim gets."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kvestigate.cluster.controllers.storage import volumes
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeStatus,
    StorageClass,
)
from tests.cluster.controllers.builders import at, view


def claim(size: str = "5Gi", name: str = "c", **spec: Any) -> PersistentVolumeClaim:
    given = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "manual",
        "resources": {"requests": {"storage": size}},
        **spec,
    }
    return view(PersistentVolumeClaim, name, spec=given)


def volume(name: str, size: str = "10Gi", labels: Any = None, **spec: Any) -> PersistentVolume:
    given = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
        "storageClassName": "manual",
        **spec,
    }
    return view(PersistentVolume, name, meta={"labels": labels or {}}, spec=given)


def _for(name: str, uid: str = "") -> dict[str, Any]:
    return {"claimRef": {"namespace": "default", "name": name, "uid": uid}}


@pytest.mark.parametrize(
    ("it", "found", "expected"),
    [
        (claim(), [volume("big", "20Gi"), volume("fit", "6Gi"), volume("tiny", "1Gi")], "fit"),
        (claim(storageClassName="other"), [volume("v")], None),
        (claim(storageClassName=""), [volume("v", storageClassName="")], "v"),
        (claim(accessModes=["ReadWriteMany"]), [volume("v")], None),
        (claim(volumeMode="Block"), [volume("v")], None),
        (
            claim(selector={"matchLabels": {"a": "b"}}),
            [volume("v"), volume("w", labels={"a": "b"})],
            "w",
        ),
        (claim(), [volume("v", **_for("other"))], None),
        (claim(), [volume("v", "1Gi"), volume("mine", "1Gi", **_for("c"))], "mine"),
        (claim(), [volume("v", **_for("c", "uid-of-an-earlier-one"))], None),
    ],
    ids=[
        "smallest",
        "class",
        "no-class",
        "modes",
        "block",
        "selector",
        "taken",
        "reserved",
        "used-before",
    ],
)
def test_the_match(
    it: PersistentVolumeClaim, found: list[PersistentVolume], expected: str | None
) -> None:
    best = volumes.match(it, found)
    assert (best.metadata.name if best else None) == expected


def test_a_local_volume_is_pinned_to_its_node() -> None:
    storage_class = view(StorageClass, "local-path", reclaimPolicy="Delete")
    node = view(Node, "n1", meta={"labels": {volumes.HOSTNAME: "host-1"}})
    body = volumes.provisioned(claim(), storage_class, node)
    (term,) = body["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term == {
        "matchExpressions": [{"key": volumes.HOSTNAME, "operator": "In", "values": ["host-1"]}]
    }
    assert body["metadata"]["name"] == "pvc-uid-c"
    assert body["spec"]["hostPath"]["path"].startswith(f"{volumes.ROOT}/pvc-uid-c")


@pytest.mark.parametrize(
    ("spec", "owner", "phase"),
    [
        ({}, None, "Available"),
        (_for("c"), None, "Available"),
        (_for("c", "uid-c"), claim(volumeName="v"), "Bound"),
        (_for("c", "uid-c"), None, "Released"),
        (_for("c", "uid-before"), claim(volumeName="v"), "Released"),
    ],
)
def test_the_phase_of_a_volume(spec: Any, owner: PersistentVolumeClaim | None, phase: str) -> None:
    assert volumes.phase_of(volume("v", **spec), owner) == phase


@pytest.mark.parametrize(
    ("spec", "owner", "phase"),
    [
        ({}, None, "Failed"),
        (_for("c", "uid-c"), None, "Failed"),
        (_for("c", "uid-c"), claim(volumeName="v"), "Bound"),
    ],
)
def test_a_failed_volume_stays_failed_until_it_is_bound(
    spec: Any, owner: PersistentVolumeClaim | None, phase: str
) -> None:
    failed = msgspec.structs.replace(
        volume("v", **spec), status=PersistentVolumeStatus(phase="Failed", message="no deleter")
    )
    assert volumes.phase_of(failed, owner) == phase


def test_of_several_default_classes_the_newest_counts() -> None:
    def marked(name: str, age: float, default: str = "true") -> StorageClass:
        notes = {volumes.DEFAULT_CLASS: default}
        return view(StorageClass, name, meta={"annotations": notes, "creationTimestamp": at(-age)})

    found = [marked("old", 100), marked("new", 10), marked("not", 1, "false")]
    best = volumes.default_class(found)
    assert best is not None
    assert best.metadata.name == "new"
    assert volumes.default_class([]) is None


@pytest.mark.parametrize(
    ("asked", "had", "by", "expected"),
    [
        ("6Gi", "5Gi", volumes.PROVISIONER, "6Gi"),
        ("5Gi", "5Gi", volumes.PROVISIONER, None),
        ("5Gi", "6Gi", volumes.PROVISIONER, None),
        ("6Gi", "5Gi", "somebody.else/disks", None),
    ],
)
def test_a_volume_of_ours_grows_with_its_claim(
    asked: str, had: str, by: str, expected: str | None
) -> None:
    it = view(
        PersistentVolumeClaim,
        "c",
        spec={"resources": {"requests": {"storage": asked}}},
        status={"capacity": {"storage": had}},
    )
    notes = {"annotations": {volumes.PROVISIONED_BY: by}}
    its = view(PersistentVolume, "v", meta=notes, spec={"capacity": {"storage": had}})
    assert volumes.grown(it, its) == expected

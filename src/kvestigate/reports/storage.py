"""Claims, volumes and how much each StorageClass has bound. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kvestigate.kube import quantities
from kvestigate.kube.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kvestigate.render.blocks import Block, Cell, Column, Table, Tone, text
from kvestigate.render.human import counted, size
from kvestigate.reports.model import Report
from kvestigate.snapshot import listings
from kvestigate.snapshot.snapshot import Snapshot

_DEFAULT = "storageclass.kubernetes.io/is-default-class"


@dataclass(frozen=True, slots=True)
class ClaimRow:
    namespace: str
    name: str
    phase: str
    """`Bound`, `Pending` or `Lost`."""
    storage_class: str
    volume: str
    bytes: int
    """Of the volume if bound, else what is asked for."""
    used_by: int | None
    """Pods that mount it; None if pods could not be listed."""


@dataclass(frozen=True, slots=True)
class VolumeRow:
    name: str
    phase: str
    """`Available`, `Bound`, `Released` or `Failed`."""
    storage_class: str
    claim: str
    """`namespace/name`, or empty."""
    bytes: int
    reclaim_policy: str
    orphaned: bool
    """Its claim is gone and it was kept: nobody can use it until somebody decides."""


@dataclass(frozen=True, slots=True)
class ClassRow:
    name: str
    provisioner: str
    default: bool
    volumes: int
    bound_bytes: int


@dataclass(frozen=True, slots=True)
class StorageReport:
    claims: tuple[ClaimRow, ...]
    volumes: tuple[VolumeRow, ...]
    classes: tuple[ClassRow, ...]


def collect(snapshot: Snapshot) -> StorageReport:
    volumes = tuple(_volume(it) for it in snapshot.of(listings.VOLUMES))
    users = mounts(snapshot) if snapshot.knows(listings.PODS) else None
    return StorageReport(
        claims=tuple(_claim(it, users) for it in snapshot.of(listings.CLAIMS)),
        volumes=volumes,
        classes=_classes(snapshot.of(listings.STORAGE_CLASSES), volumes),
    )


def mounts(snapshot: Snapshot) -> dict[tuple[str, str], int]:
    """Claim -> pods that mount it."""
    found: dict[tuple[str, str], int] = {}
    for pod in snapshot.of(listings.PODS):
        if pod.finished:
            continue
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                name = volume.persistent_volume_claim.claim_name
            elif volume.ephemeral is not None:
                name = f"{pod.metadata.name}-{volume.name}"
            else:
                continue
            key = (pod.metadata.namespace, name)
            found[key] = found.get(key, 0) + 1
    return found


def _claim(claim: PersistentVolumeClaim, users: dict[tuple[str, str], int] | None) -> ClaimRow:
    key = (claim.metadata.namespace, claim.metadata.name)
    amounts = claim.status.capacity or claim.spec.resources.requests
    return ClaimRow(
        *key,
        phase=claim.status.phase,
        storage_class=claim.spec.storage_class_name or "",
        volume=claim.spec.volume_name,
        bytes=quantities.whole(amounts.get("storage", "0")),
        used_by=None if users is None else users.get(key, 0),
    )


def _volume(volume: PersistentVolume) -> VolumeRow:
    claim = volume.spec.claim_ref
    return VolumeRow(
        name=volume.metadata.name,
        phase=volume.status.phase,
        storage_class=volume.spec.storage_class_name,
        claim=f"{claim.namespace}/{claim.name}" if claim else "",
        bytes=quantities.whole(volume.spec.capacity.get("storage", "0")),
        reclaim_policy=volume.spec.persistent_volume_reclaim_policy,
        orphaned=volume.status.phase in ("Released", "Failed"),
    )


def _classes(classes: Iterable[StorageClass], volumes: Sequence[VolumeRow]) -> tuple[ClassRow, ...]:
    """The classes, and those that volumes name without there being such an object."""
    known = {it.metadata.name: it for it in classes}
    named = {it.storage_class for it in volumes if it.phase == "Bound"}
    rows = []
    for name in (*known, *sorted(named - known.keys())):
        bound = [it for it in volumes if it.storage_class == name and it.phase == "Bound"]
        found = known.get(name)
        rows.append(
            ClassRow(
                name=name,
                provisioner=found.provisioner if found else "",
                default=found is not None and found.metadata.annotations.get(_DEFAULT) == "true",
                volumes=len(bound),
                bound_bytes=sum(it.bytes for it in bound),
            )
        )
    return tuple(rows)


def render(report: StorageReport) -> Sequence[Block]:
    return [
        text("PersistentVolumeClaims", Tone.STRONG),
        _claims(report.claims),
        text("PersistentVolumes", Tone.STRONG),
        _volumes(report.volumes),
        text("StorageClasses", Tone.STRONG),
        _class_table(report.classes),
    ]


def _claims(claims: Sequence[ClaimRow]) -> Table:
    columns = (
        Column("namespace"),
        Column("name"),
        Column("phase"),
        Column("class"),
        Column("volume"),
        Column("size", number=True),
        Column("used by", number=True),
    )
    rows: list[list[str | Cell]] = [
        [
            it.namespace,
            it.name,
            Cell(it.phase, Tone.GOOD if it.phase == "Bound" else Tone.BAD),
            it.storage_class or "-",
            it.volume or "-",
            size(it.bytes),
            "?" if it.used_by is None else counted(it.used_by, "pod"),
        ]
        for it in claims
    ]
    return Table(columns, rows, empty="no PersistentVolumeClaims")


def _volumes(volumes: Sequence[VolumeRow]) -> Table:
    columns = (
        Column("name"),
        Column("phase"),
        Column("class"),
        Column("claim"),
        Column("size", number=True),
        Column("reclaim"),
    )
    rows: list[list[str | Cell]] = [
        [
            it.name,
            Cell(f"{it.phase}, orphaned", Tone.WARN) if it.orphaned else it.phase,
            it.storage_class or "-",
            it.claim or "-",
            size(it.bytes),
            it.reclaim_policy,
        ]
        for it in volumes
    ]
    return Table(columns, rows, empty="no PersistentVolumes")


def _class_table(classes: Sequence[ClassRow]) -> Table:
    columns = (
        Column("name"),
        Column("provisioner"),
        Column("volumes", number=True),
        Column("bound", number=True),
    )
    rows: list[list[str | Cell]] = [
        [
            f"{it.name or '(none)'}{' (default)' if it.default else ''}",
            it.provisioner or "-",
            str(it.volumes),
            size(it.bound_bytes),
        ]
        for it in classes
    ]
    return Table(columns, rows, empty="no StorageClasses")


REPORT = Report(
    name="storage",
    summary="PersistentVolumeClaims, PersistentVolumes, bound capacity per class.",
    needs=(listings.CLAIMS, listings.VOLUMES, listings.STORAGE_CLASSES, listings.PODS),
    collect=collect,
    render=render,
)

"""PersistentVolumeClaims, PersistentVolumes, and bound capacity per StorageClass. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kvestigate.kube import quantities
from kvestigate.kube.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kvestigate.render.blocks import Block, Cell, Field, Table, Tone, table, text
from kvestigate.render.human import counted, or_unknown, size
from kvestigate.reports.model import Report, or_not_listed
from kvestigate.snapshot import listings
from kvestigate.snapshot.model import Snapshot

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
    """The size of the volume if bound, otherwise the requested size."""
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
    """Its claim no longer exists: no claim can use the volume until it is reclaimed by hand."""


@dataclass(frozen=True, slots=True)
class ClassRow:
    name: str
    provisioner: str
    default: bool
    volumes: int | None
    """Bound ones; None if volumes could not be listed."""
    bound_bytes: int | None


@dataclass(frozen=True, slots=True)
class StorageReport:
    """None is unknown: the kind could not be listed."""

    claims: tuple[ClaimRow, ...] | None
    volumes: tuple[VolumeRow, ...] | None
    classes: tuple[ClassRow, ...] | None


def collect(snapshot: Snapshot) -> StorageReport:
    claims = snapshot.known(listings.CLAIMS)
    volumes = snapshot.known(listings.VOLUMES)
    classes = snapshot.known(listings.STORAGE_CLASSES)
    users = mounts(snapshot) if snapshot.knows(listings.PODS) else None
    rows = None if volumes is None else tuple(map(_volume, volumes))
    return StorageReport(
        claims=None if claims is None else tuple(_claim(claim, users) for claim in claims),
        volumes=rows,
        classes=None if classes is None else _classes(classes, rows),
    )


def mounts(snapshot: Snapshot) -> dict[tuple[str, str], int]:
    """Claim -> pods that mount it."""
    counts: dict[tuple[str, str], int] = {}
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
            counts[key] = counts.get(key, 0) + 1
    return counts


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


def _classes(
    classes: Iterable[StorageClass], volumes: Sequence[VolumeRow] | None
) -> tuple[ClassRow, ...]:
    """The StorageClasses, and classes that only volumes name."""
    known = {storage_class.metadata.name: storage_class for storage_class in classes}
    in_use = [volume for volume in volumes or () if volume.phase == "Bound"]
    named = {volume.storage_class for volume in in_use}
    rows = []
    for name in (*known, *sorted(named - known.keys())):
        bound = [volume for volume in in_use if volume.storage_class == name]
        storage_class = known.get(name)
        rows.append(
            ClassRow(
                name=name,
                provisioner=storage_class.provisioner if storage_class else "",
                default=storage_class is not None
                and storage_class.metadata.annotations.get(_DEFAULT) == "true",
                volumes=None if volumes is None else len(bound),
                bound_bytes=None if volumes is None else sum(volume.bytes for volume in bound),
            )
        )
    return tuple(rows)


def render(report: StorageReport) -> Sequence[Block]:
    return [
        text("PersistentVolumeClaims", Tone.STRONG),
        or_not_listed(report.claims, _claims, "PersistentVolumeClaims"),
        text("PersistentVolumes", Tone.STRONG),
        or_not_listed(report.volumes, _volumes, "PersistentVolumes"),
        text("StorageClasses", Tone.STRONG),
        or_not_listed(report.classes, _class_table, "StorageClasses"),
    ]


def _claims(claims: Sequence[ClaimRow]) -> Table:
    return table(
        claims,
        Field("namespace", lambda row: row.namespace),
        Field("name", lambda row: row.name),
        Field(
            "phase", lambda row: Cell(row.phase, Tone.GOOD if row.phase == "Bound" else Tone.BAD)
        ),
        Field("class", lambda row: row.storage_class or "-"),
        Field("volume", lambda row: row.volume or "-"),
        Field("size", lambda row: size(row.bytes), number=True),
        Field(
            "used by",
            lambda row: "unknown" if row.used_by is None else counted(row.used_by, "pod"),
            number=True,
        ),
        empty="no PersistentVolumeClaims",
    )


def _volumes(volumes: Sequence[VolumeRow]) -> Table:
    return table(
        volumes,
        Field("name", lambda row: row.name),
        Field(
            "phase",
            lambda row: Cell(f"{row.phase}, orphaned", Tone.WARN) if row.orphaned else row.phase,
        ),
        Field("class", lambda row: row.storage_class or "-"),
        Field("claim", lambda row: row.claim or "-"),
        Field("size", lambda row: size(row.bytes), number=True),
        Field("reclaim", lambda row: row.reclaim_policy),
        empty="no PersistentVolumes",
    )


def _class_table(classes: Sequence[ClassRow]) -> Table:
    return table(
        classes,
        Field("name", lambda row: f"{row.name or '(none)'}{' (default)' if row.default else ''}"),
        Field("provisioner", lambda row: row.provisioner or "-"),
        Field("volumes", lambda row: or_unknown(row.volumes), number=True),
        Field("bound", lambda row: or_unknown(row.bound_bytes, size), number=True),
        empty="no StorageClasses",
    )


REPORT = Report(
    name="storage",
    summary="PersistentVolumeClaims, PersistentVolumes, bound capacity per class.",
    needs=(listings.CLAIMS, listings.VOLUMES, listings.STORAGE_CLASSES, listings.PODS),
    collect=collect,
    render=render,
)

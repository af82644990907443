"""Claims, volumes and the classes that make one from the other."""

from __future__ import annotations

from msgspec import field

from kvestigate.kube.views.meta import Condition, LabelSelector, Metadata, ObjectReference, View
from kvestigate.kube.views.placement import NodeSelector


class VolumeRequirements(View, frozen=True):
    requests: dict[str, str] = field(default_factory=dict)


class PersistentVolumeClaimSpec(View, frozen=True):
    access_modes: tuple[str, ...] = ()
    resources: VolumeRequirements = VolumeRequirements()
    storage_class_name: str | None = None
    """None: the default class. Empty: no class, a volume made by hand."""
    volume_name: str = ""
    volume_mode: str = "Filesystem"
    selector: LabelSelector | None = None
    """Of volumes made by hand."""


class PersistentVolumeClaimStatus(View, frozen=True):
    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: dict[str, str] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    allocated_resource_statuses: dict[str, str] = field(default_factory=dict)
    """How far a resize is, by resource: `ControllerResizeInfeasible`."""


class PersistentVolumeClaim(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class VolumeNodeAffinity(View, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(View, frozen=True):
    capacity: dict[str, str] = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    persistent_volume_reclaim_policy: str = ""
    volume_mode: str = "Filesystem"
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolumeStatus(View, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""


class PersistentVolume(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologyRequirement(View, frozen=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(View, frozen=True):
    """All requirements must hold."""

    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(View, frozen=True):
    """The annotation `storageclass.kubernetes.io/is-default-class` marks the default."""

    metadata: Metadata = Metadata()
    provisioner: str = ""
    reclaim_policy: str = "Delete"
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologyTerm, ...] = ()
    """Where volumes can be made: one term must hold; none means everywhere."""

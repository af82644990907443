"""What the scheduler reads of storage objects beyond the shared views."""

from __future__ import annotations

from kvestigate.kube.views import storage
from kvestigate.kube.views.meta import LabelSelector, Metadata, View


class TopologyRequirement(View, frozen=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(View, frozen=True):
    """All requirements must hold."""

    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(storage.StorageClass, frozen=True):
    allowed_topologies: tuple[TopologyTerm, ...] = ()
    """Where volumes can be made: one term must hold; none means everywhere."""


class ClaimSpec(storage.PersistentVolumeClaimSpec, frozen=True):
    selector: LabelSelector | None = None
    """Of volumes made by hand."""


class Claim(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: ClaimSpec = ClaimSpec()
    status: storage.PersistentVolumeClaimStatus = storage.PersistentVolumeClaimStatus()

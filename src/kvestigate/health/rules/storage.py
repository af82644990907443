"""Claims without a volume and volumes without a claim. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.render.human import size
from kvestigate.render.severity import Severity
from kvestigate.reports import storage
from kvestigate.snapshot import listings

_LATE = "WaitForFirstConsumer"


@rule("claim-unbound", "A PersistentVolumeClaim has no volume.", *storage.REPORT.needs)
def unbound_claims(cluster: Cluster) -> Iterator[Fault]:
    classes = {
        storage_class.metadata.name: storage_class.volume_binding_mode
        for storage_class in cluster.of(listings.STORAGE_CLASSES)
    }
    for claim in cluster.snapshot.derived(storage.collect).claims or ():
        if claim.phase == "Bound" or (
            classes.get(claim.storage_class) == _LATE and not claim.used_by
        ):
            continue  # its volume is provisioned for the first pod that mounts it
        if claim.phase == "Lost":
            cause = f"PersistentVolume {claim.volume} no longer exists."
        elif claim.storage_class and claim.storage_class not in classes:
            cause = f"StorageClass {claim.storage_class} does not exist."
        else:
            cause = f"no PersistentVolume of {size(claim.bytes)} was found or provisioned."
        yield Fault(
            severity=Severity.CRITICAL if claim.used_by else Severity.WARNING,
            subject=Subject("PersistentVolumeClaim", claim.name, claim.namespace),
            evidence=f"{claim.phase or 'Pending'}: {cause}",
            why="Pods that mount this claim cannot start.",
            command=f"kubectl -n {claim.namespace} describe pvc {claim.name}",
        )


@rule("volume-orphaned", "A PersistentVolume is left without a claim.", *storage.REPORT.needs)
def orphaned_volumes(cluster: Cluster) -> Iterator[Fault]:
    for volume in cluster.snapshot.derived(storage.collect).volumes or ():
        if volume.orphaned:
            yield Fault(
                severity=Severity.WARNING,
                subject=Subject("PersistentVolume", volume.name),
                evidence=f"{volume.phase}: claim {volume.claim} no longer exists; the volume "
                f"keeps {size(volume.bytes)}.",
                why="The volume still uses storage, and no claim can use it until it is reclaimed "
                "by hand.",
                command=f"kubectl describe pv {volume.name}",
            )


RULES = (
    unbound_claims,
    orphaned_volumes,
)

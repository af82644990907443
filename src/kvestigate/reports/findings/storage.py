"""Claims without volumes and volumes without claims. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.render.human import size
from kvestigate.render.severity import Severity
from kvestigate.reports import storage
from kvestigate.reports.findings.model import Finding, Rule, Subject
from kvestigate.snapshot import listings
from kvestigate.snapshot.snapshot import Snapshot

_LATE = "WaitForFirstConsumer"


def unbound_claims(snapshot: Snapshot) -> Iterator[Finding]:
    late = {
        it.metadata.name
        for it in snapshot.of(listings.STORAGE_CLASSES)
        if it.volume_binding_mode == _LATE
    }
    classes = {it.metadata.name for it in snapshot.of(listings.STORAGE_CLASSES)}
    for claim in snapshot.derived(storage.collect).claims:
        if claim.phase == "Bound" or (claim.storage_class in late and not claim.used_by):
            continue  # a volume is made once a pod asks for it
        if claim.phase == "Lost":
            seen = f"its volume {claim.volume} is gone"
        elif claim.storage_class and claim.storage_class not in classes:
            seen = f"there is no StorageClass {claim.storage_class}"
        else:
            seen = f"no volume of {size(claim.bytes)} was found or made for it"
        yield Finding(
            rule="claim-unbound",
            severity=Severity.CRITICAL if claim.used_by else Severity.WARNING,
            subject=Subject("PersistentVolumeClaim", claim.name, claim.namespace),
            evidence=f"{claim.phase or 'Pending'}: {seen}",
            why="pods that mount it cannot start",
            command=f"kubectl -n {claim.namespace} describe pvc {claim.name}",
        )


def orphaned_volumes(snapshot: Snapshot) -> Iterator[Finding]:
    for volume in snapshot.derived(storage.collect).volumes:
        if volume.orphaned:
            yield Finding(
                rule="volume-orphaned",
                severity=Severity.WARNING,
                subject=Subject("PersistentVolume", volume.name),
                evidence=f"{volume.phase}: its claim {volume.claim} is gone, "
                f"{size(volume.bytes)} are kept",
                why="it is paid for, and no claim can use it until somebody frees or deletes it",
                command=f"kubectl describe pv {volume.name}",
            )


RULES = (
    Rule("claim-unbound", "A claim has no volume.", storage.REPORT.needs, unbound_claims),
    Rule("volume-orphaned", "A volume has no claim.", storage.REPORT.needs, orphaned_volumes),
)

"""PersistentVolumeClaims without a volume, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from kvestigate.health.cluster import Cluster, as_selector, subject_of
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.kube import quantities
from kvestigate.kube.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kvestigate.render.human import listed, since_when, size
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings

KIND = "PersistentVolumeClaim"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_LATE = "WaitForFirstConsumer"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_PROMPT = timedelta(minutes=1)
_FAILED = ("ProvisioningFailed", "FailedBinding", "VolumeMismatch")


def bytes_of(amounts: dict[str, str]) -> int:
    return quantities.whole(amounts.get("storage", "0"))


@dataclass(frozen=True, slots=True)
class _Cause:
    """Why a claim has no volume."""

    text: str
    causes: tuple[Subject, ...] = ()
    definite: bool = True
    """False: it may still get its volume."""
    waits_for_pod: bool = False
    """Its volume is made once a pod is scheduled that mounts it."""


@rule(
    "claim-unbound",
    "A PersistentVolumeClaim has no volume.",
    listings.CLAIMS,
    listings.VOLUMES,
    listings.STORAGE_CLASSES,
    listings.PODS,
    uses=(listings.EVENTS,),
)
def unbound_claims(cluster: Cluster) -> Iterator[Fault]:
    for claim in cluster.of(listings.CLAIMS):
        meta = claim.metadata
        if claim.status.phase == "Bound" or meta.deletion_timestamp is not None:
            continue
        cause = _why_unbound(cluster, claim)
        users = cluster.mounting(meta.name, meta.namespace)
        if cause is None or (cause.waits_for_pod and not users):
            continue
        pods = tuple(subject_of("Pod", pod.metadata) for pod in users)
        young = not cluster.settled(meta.creation_timestamp)
        yield Fault(
            severity=Severity.CRITICAL if users else Severity.WARNING,
            subject=subject_of(KIND, meta),
            evidence=f"{claim.status.phase or 'Pending'}{since_when(meta.creation_timestamp)}: "
            f"{cause.text}",
            why="Pods that mount this claim cannot start.",
            command=f"kubectl -n {meta.namespace} describe pvc {meta.name}",
            since=meta.creation_timestamp,
            causes=(*cause.causes, *(pods if cause.waits_for_pod else ())),
            only_as_effect=cause.waits_for_pod or (not cause.definite and young),
        )


def _why_unbound(cluster: Cluster, claim: PersistentVolumeClaim) -> _Cause | None:
    """None if nothing is wrong."""
    name = claim.metadata.annotations.get(_OLD_CLASS, claim.spec.storage_class_name)
    if claim.status.phase == "Lost":
        return _Cause(f"PersistentVolume {claim.spec.volume_name} no longer exists.")
    if claim.spec.volume_name:
        return _named_volume(cluster, claim, name or "")
    if name is None:
        return _no_class(cluster, claim)
    storage_class = cluster.find(listings.STORAGE_CLASSES, name) if name else None
    if storage_class is None:
        return _unknown_class(cluster, claim, name)
    if storage_class.provisioner == NO_PROVISIONER:
        return _made_by_hand(cluster, claim, storage_class)
    return _provisioned(cluster, claim, storage_class)


def _named_volume(cluster: Cluster, claim: PersistentVolumeClaim, name: str) -> _Cause:
    """The claim asks for one volume, by its name."""
    wanted = claim.spec.volume_name
    volume = cluster.find(listings.VOLUMES, wanted)
    subject = f"PersistentVolume {wanted} (spec.volumeName)"
    causes = (Subject("PersistentVolume", wanted),)
    if volume is None:
        return _Cause(f"{subject} does not exist.", causes)
    problem = _misfit(claim, volume, name)
    if problem:
        return _Cause(f"{subject} {problem}.", causes)
    return _Cause(f"{subject} is not bound yet.", causes, definite=False)


def _no_class(cluster: Cluster, claim: PersistentVolumeClaim) -> _Cause:
    """A default class that appears later is given to the claim by a controller."""
    if any(
        one.metadata.annotations.get(DEFAULT_CLASS) == "true"
        for one in cluster.of(listings.STORAGE_CLASSES)
    ):
        return _Cause("the claim has not got the default StorageClass yet.", definite=False)
    return _among_volumes(
        cluster,
        claim,
        "",
        "the claim names no StorageClass, no StorageClass is the default, and no PersistentVolume "
        "without a class fits",
    )


def _unknown_class(cluster: Cluster, claim: PersistentVolumeClaim, name: str) -> _Cause:
    if name and not _of_class(cluster, name):
        return _Cause(f"StorageClass {name} does not exist.")
    which = f"of class {name}" if name else "without a class (storageClassName is empty)"
    return _among_volumes(cluster, claim, name, f"no PersistentVolume {which} fits")


def _made_by_hand(
    cluster: Cluster, claim: PersistentVolumeClaim, storage_class: StorageClass
) -> _Cause:
    name = storage_class.metadata.name
    cause = _among_volumes(
        cluster,
        claim,
        name,
        f"StorageClass {name} provisions no volumes ({NO_PROVISIONER}), and no PersistentVolume of "
        "this class fits",
    )
    late = storage_class.volume_binding_mode == _LATE
    nobody = not cluster.mounting(claim.metadata.name, claim.metadata.namespace)
    return replace(cause, waits_for_pod=late and (nobody or not cause.definite))


def _of_class(cluster: Cluster, name: str) -> list[PersistentVolume]:
    volumes = cluster.of(listings.VOLUMES)
    return [volume for volume in volumes if volume.spec.storage_class_name == name]


def _among_volumes(
    cluster: Cluster, claim: PersistentVolumeClaim, name: str, nothing: str
) -> _Cause:
    """Why no volume of a class fits; a volume that fits is bound soon."""
    problems = {
        volume.metadata.name: _misfit(claim, volume, name) for volume in _of_class(cluster, name)
    }
    fitting = [volume for volume, problem in problems.items() if not problem]
    if fitting:
        return _Cause(
            f"PersistentVolume {listed(fitting)} fits, but is not bound to it.", definite=False
        )
    told = [f"PersistentVolume {volume} {problem}" for volume, problem in problems.items()]
    chosen = as_selector(claim.spec.selector)
    asked = f" and has labels {chosen} (spec.selector)" if claim.spec.selector is not None else ""
    return _Cause(
        f"{nothing}{asked}: {listed(told)}." if told else f"{nothing}{asked}; there is none."
    )


def _provisioned(
    cluster: Cluster, claim: PersistentVolumeClaim, storage_class: StorageClass
) -> _Cause:
    meta, name = claim.metadata, storage_class.metadata.name
    provisioner, causes = storage_class.provisioner, (Subject("StorageClass", name),)
    failed = cluster.events(subject_of(KIND, meta), *_FAILED)
    if failed:
        return _Cause(
            f"provisioner {provisioner} failed: {failed[0].reason}: {failed[0].message}", causes
        )
    late = storage_class.volume_binding_mode == _LATE
    if late and _SELECTED_NODE not in meta.annotations:
        users = [pod.metadata.name for pod in cluster.mounting(meta.name, meta.namespace)]
        return _Cause(
            f"the claim waits until pod {listed(users)} is scheduled (StorageClass {name}: "
            f"{_LATE}).",
            waits_for_pod=True,
        )
    known = any(
        volume.metadata.annotations.get(PROVISIONED_BY) == provisioner
        for volume in cluster.of(listings.VOLUMES)
    )
    more = "" if known else " and has made no other volume in this cluster: it may not run"
    return _Cause(
        f"provisioner {provisioner} of StorageClass {name} has made no volume for the claim{more}.",
        causes,
        definite=not known and cluster.settled(meta.creation_timestamp, _PROMPT),
    )


def _misfit(claim: PersistentVolumeClaim, volume: PersistentVolume, name: str) -> str:
    """Why a volume cannot be bound to a claim; empty if it can."""
    spec, wanted = claim.spec, bytes_of(claim.spec.resources.requests)
    holder = volume.spec.claim_ref
    own = (claim.metadata.namespace, claim.metadata.name)
    if holder is not None and (holder.namespace, holder.name) != own:
        return f"belongs to claim {holder.namespace}/{holder.name}"
    if volume.status.phase in ("Released", "Failed"):
        return f"is {volume.status.phase}"
    if volume.spec.storage_class_name != name:
        return f"is of class {volume.spec.storage_class_name or '(none)'}, not {name or '(none)'}"
    offered = bytes_of(volume.spec.capacity)
    if offered < wanted:
        return f"has {size(offered)}, and the claim requests {size(wanted)}"
    modes = volume.spec.access_modes
    missing = [mode for mode in spec.access_modes if mode not in modes]
    if missing:
        return f"has access mode {listed(modes)}, and the claim requests {listed(missing)}"
    if volume.spec.volume_mode != spec.volume_mode:
        return f"has volumeMode {volume.spec.volume_mode}, and the claim {spec.volume_mode}"
    selector = as_selector(spec.selector)
    if spec.selector is not None and not selector.matches(volume.metadata.labels):
        return f"does not match the selector {selector}"
    return ""


RULES = (unbound_claims,)

"""Which pods are evicted, and why others are skipped. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kvestigate.kube.views.pods import Pod

SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
_MIRROR = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True)
class Target:
    """A pod to be evicted."""

    namespace: str
    name: str
    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class Skipped:
    namespace: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    evict: tuple[Target, ...]
    skip: tuple[Skipped, ...]


def choose(pods: Iterable[Pod], *, include_system: bool = False) -> Choice:
    evict, skip = [], []
    for pod in pods:
        meta = pod.metadata
        reason = _protection(pod, include_system)
        if reason:
            skip.append(Skipped(meta.namespace, meta.name, reason))
        else:
            evict.append(Target(meta.namespace, meta.name, meta.uid, pod.spec.node_name))
    return Choice(tuple(evict), tuple(skip))


def _protection(pod: Pod, include_system: bool) -> str:
    """Why a pod is not evicted; empty if it is."""
    meta = pod.metadata
    if any(owner.kind == "DaemonSet" and owner.controller for owner in meta.owner_references):
        return "managed by a DaemonSet"
    if _MIRROR in meta.annotations:
        return "static pod"
    if meta.deletion_timestamp is not None:
        return "already terminating"
    if pod.status.phase in ("Succeeded", "Failed"):
        return "completed"
    if meta.namespace in SYSTEM and not include_system:
        return "in a system namespace"
    return ""

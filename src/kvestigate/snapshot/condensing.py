"""Pods reduced to the fields that reports use, with equal parts shared. Pure.

A large cluster has many replicas of few kinds of pods. What replicas have in common is kept once.
Fields that no report uses (times, addresses, conditions that are True) are dropped.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from kvestigate.kube.views.meta import CondensedMetadata, CondensedOwnerReference, Condition
from kvestigate.kube.views.pods import (
    CondensedContainer,
    CondensedPodSpec,
    CondensedPodStatus,
    ResourceRequirements,
    Volume,
)
from kvestigate.snapshot.objects import Pod

T = TypeVar("T")

_Work = tuple[
    tuple[CondensedContainer, ...],
    tuple[CondensedContainer, ...],
    dict[str, str],
    ResourceRequirements | None,
]
"""Containers, init containers, overhead and pod resources: the part from the template."""

_encode = msgspec.msgpack.Encoder().encode


class PodCondenser:
    """Reduces the pods of one list; equal parts are shared among them."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._labels = _Shared[dict[str, str]]()
        self._owners = _Shared[tuple[CondensedOwnerReference, ...]]()
        self._work = _Shared[_Work]()
        self._volumes = _Shared[tuple[Volume, ...]]()
        self._statuses = _Shared[CondensedPodStatus]()

    def __call__(self, pod: Pod) -> Pod:
        return Pod(self._meta(pod.metadata), self._spec(pod.spec), self._status(pod.status))

    def _meta(self, meta: CondensedMetadata) -> CondensedMetadata:
        return CondensedMetadata(
            name=meta.name,
            namespace=self._name(meta.namespace),
            labels=self._labels.of(meta.labels),
            deletion_timestamp=meta.deletion_timestamp,
            owner_references=self._owners.of(meta.owner_references),
        )

    def _spec(self, spec: CondensedPodSpec) -> CondensedPodSpec:
        containers, init_containers, overhead, resources = self._work.of(
            (spec.containers, spec.init_containers, spec.overhead, spec.resources)
        )
        return CondensedPodSpec(
            containers=containers,
            init_containers=init_containers,
            node_name=self._name(spec.node_name),
            overhead=overhead,
            resources=resources,
            volumes=self._claims(spec.volumes),
        )

    def _claims(self, volumes: tuple[Volume, ...]) -> tuple[Volume, ...]:
        claims = tuple(
            [volume for volume in volumes if volume.persistent_volume_claim or volume.ephemeral]
        )
        return self._volumes.of(claims) if claims else ()

    def _status(self, status: CondensedPodStatus) -> CondensedPodStatus:
        return self._statuses.of(
            CondensedPodStatus(
                phase=status.phase,
                reason=status.reason,
                message=status.message,
                conditions=_not_true(status.conditions),
                container_statuses=status.container_statuses,
                init_container_statuses=status.init_container_statuses,
            )
        )

    def _name(self, name: str) -> str:
        return self._names.setdefault(name, name)


class _Shared(Generic[T]):
    """Keeps one of several equal values."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, T] = {}

    def of(self, value: T) -> T:
        return self._known.setdefault(_encode(value), value)


def _not_true(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    return tuple([condition for condition in conditions if condition.status != "True"])

"""Pods whose equal parts are kept once. Pure.

A large cluster has many replicas of few kinds of pods. What replicas have in common is kept once.
Fields that tell replicas apart and that nobody uses (times of start, addresses, conditions that
are True, the volume of the service account's token) are dropped.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec
from msgspec import structs

from kvestigate.kube.views.meta import CondensedOwnerReference, Condition
from kvestigate.kube.views.pods import CondensedPodStatus
from kvestigate.snapshot.pods import Pod, PodMetadata, PodSpec, PodVolume

T = TypeVar("T")

_TOKEN = "kube-api-access-"
"""The volume of the service account's token: its name ends in a random part."""

_encode = msgspec.msgpack.Encoder().encode


class PodCondenser:
    """Reduces the pods of one list; equal parts are shared among them."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._words = _Shared[dict[str, str]]()
        self._owners = _Shared[tuple[CondensedOwnerReference, ...]]()
        self._specs = _Shared[PodSpec]()
        self._statuses = _Shared[CondensedPodStatus]()

    def __call__(self, pod: Pod) -> Pod:
        return Pod(self._meta(pod.metadata), self._spec(pod.spec), self._status(pod.status))

    def _meta(self, meta: PodMetadata) -> PodMetadata:
        return PodMetadata(
            name=meta.name,
            namespace=self._name(meta.namespace),
            labels=self._words.of(meta.labels),
            annotations=self._words.of(meta.annotations) if meta.annotations else meta.annotations,
            creation_timestamp=meta.creation_timestamp,
            deletion_timestamp=meta.deletion_timestamp,
            deletion_grace_period_seconds=meta.deletion_grace_period_seconds,
            finalizers=meta.finalizers,
            owner_references=self._owners.of(meta.owner_references),
        )

    def _spec(self, spec: PodSpec) -> PodSpec:
        """All but the node's name comes from the template, which replicas share."""
        template = self._specs.of(
            structs.replace(spec, node_name="", volumes=_without_token(spec.volumes))
        )
        return structs.replace(template, node_name=self._name(spec.node_name))

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


def _without_token(volumes: tuple[PodVolume, ...]) -> tuple[PodVolume, ...]:
    return tuple([volume for volume in volumes if not volume.name.startswith(_TOKEN)])


def _not_true(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    return tuple([condition for condition in conditions if condition.status != "True"])

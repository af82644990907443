"""PURE. Pods cut down to what reports look at, sharing whatever they have in common.

A large cluster has few kinds of pods and many of each. What replicas have alike is kept once;
what nothing here asks about (moments, addresses, conditions that hold) is not kept at all.
"""

from __future__ import annotations

from typing import TypeVar, cast

import msgspec
from msgspec import structs

from kvestigate.kube.views.pods import ContainerState, RunningState
from kvestigate.observe.views import ContainerStatus, Pod, PodMeta, PodSpec, PodStatus

T = TypeVar("T")

_RUNNING = ContainerState(running=RunningState())
_encode = msgspec.msgpack.Encoder().encode


class PodCondenser:
    """For the pods of one reading."""

    def __init__(self) -> None:
        self._known: dict[tuple[type, bytes], object] = {}
        self._names: dict[str, str] = {}

    def __call__(self, pod: Pod) -> Pod:
        return Pod(self._meta(pod.metadata), self._spec(pod.spec), self._status(pod.status))

    def _meta(self, meta: PodMeta) -> PodMeta:
        return PodMeta(
            name=meta.name,
            namespace=self._name(meta.namespace),
            labels=self._shared(meta.labels),
            deletion_timestamp=meta.deletion_timestamp,
            owner_references=self._shared(meta.owner_references),
        )

    def _spec(self, spec: PodSpec) -> PodSpec:
        claims = tuple(it for it in spec.volumes if it.persistent_volume_claim or it.ephemeral)
        return PodSpec(
            containers=self._shared(spec.containers),
            init_containers=self._shared(spec.init_containers),
            node_name=self._name(spec.node_name),
            overhead=self._shared(spec.overhead),
            resources=self._shared(spec.resources),
            volumes=self._shared(claims),
        )

    def _status(self, status: PodStatus) -> PodStatus:
        return self._shared(
            PodStatus(
                phase=status.phase,
                reason=status.reason,
                message=status.message,
                conditions=tuple(it for it in status.conditions if it.status != "True"),
                container_statuses=tuple(map(_timeless, status.container_statuses)),
                init_container_statuses=tuple(map(_timeless, status.init_container_statuses)),
            )
        )

    def _shared(self, value: T) -> T:
        """The first that was equal to this one."""
        return cast("T", self._known.setdefault((type(value), _encode(value)), value))

    def _name(self, name: str) -> str:
        return self._names.setdefault(name, name)


def _timeless(status: ContainerStatus) -> ContainerStatus:
    if status.state.running is None:
        return status
    return structs.replace(status, state=_RUNNING)

"""Which container was given which GPUs: as a device plugin would, by uuid."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from kvestigate.kube import quantities
from kvestigate.node.gpu.model import VARIABLE, Gpu, Load
from kvestigate.node.pods import Container

RESOURCE = "nvidia.com/gpu"


class NoDevices(Exception):
    """More GPUs are asked for than are free: the scheduler should have known."""


class Allocation:
    """The GPUs of one node."""

    def __init__(
        self, gpus: Iterable[Gpu] = (), *, changed: Callable[[tuple[Gpu, ...]], None] | None = None
    ) -> None:
        self._gpus = {gpu.uuid: gpu for gpu in gpus}
        self._holders: dict[tuple[str, str], tuple[str, ...]] = {}
        """(pod uid, container) -> uuids"""
        self._changed = changed

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """With their users; those that nobody has are idle, whatever their scenario says."""
        users = {
            each: f"{pod}/{container}"
            for (pod, container), given in self._holders.items()
            for each in given
        }
        return tuple(
            msgspec.structs.replace(gpu, user=users[gpu.uuid])
            if gpu.uuid in users
            else gpu
            if gpu.always
            else msgspec.structs.replace(gpu, load=Load.IDLE)
            for gpu in self._gpus.values()
        )

    def variables(self, pod_uid: str, container: Container) -> dict[str, str]:
        """What the container's environment gets; its GPUs stay its own until `release`."""
        if not self._gpus:
            return {}
        limits = container.resources.limits
        count = quantities.whole(limits[RESOURCE]) if RESOURCE in limits else 0
        if not count:
            return {}
        given = self._holders.get((pod_uid, container.name))
        if given is None:
            taken = {each for holding in self._holders.values() for each in holding}
            free = [each for each in self._gpus if each not in taken]
            if len(free) < count:
                raise NoDevices(f"{count} of {RESOURCE} asked for, {len(free)} are free")
            given = tuple(free[:count])
            self._give(pod_uid, container.name, given)
        return {VARIABLE: ",".join(given)}

    def recall(self, pod_uid: str, container: str, value: str) -> None:
        """A container of an earlier agent has these."""
        given = tuple(each for each in value.split(",") if each in self._gpus)
        if given:
            self._give(pod_uid, container, given)

    def release(self, pod_uid: str) -> None:
        held = [key for key in self._holders if key[0] == pod_uid]
        for key in held:
            del self._holders[key]
        if held:
            self._tell()

    def _give(self, pod_uid: str, container: str, given: tuple[str, ...]) -> None:
        self._holders[pod_uid, container] = given
        self._tell()

    def _tell(self) -> None:
        if self._changed is not None:
            self._changed(self.gpus)

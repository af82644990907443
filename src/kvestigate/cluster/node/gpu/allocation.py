"""Which container holds which GPUs or MIG instances, by uuid: from a device plugin, or claimed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import structs

from kvestigate.cluster.node.gpu.model import (
    CUDA_VARIABLE,
    EXPORTS,
    MIG_RESOURCE,
    RESOURCE,
    VARIABLE,
    Gpu,
    Load,
    Offer,
    Steady,
)
from kvestigate.cluster.node.spec.images import is_gpu_exporter
from kvestigate.cluster.node.spec.pod import Container, Pod
from kvestigate.kube import quantities


class NoDevices(Exception):
    """More GPUs are asked for than are free: the scheduler should have known."""


class Allocation:
    """The GPUs of one node."""

    def __init__(
        self, gpus: Iterable[Gpu] = (), *, changed: Callable[[tuple[Gpu, ...]], None] | None = None
    ) -> None:
        self._gpus = tuple(gpus)
        self._devices: dict[str, list[str]] = {}
        """Resource -> uuids"""
        for resource, device in _devices(self._gpus):
            self._devices.setdefault(resource, []).append(device)
        self._uuids = {gpu.uuid for gpu in self._gpus}
        self._uuids |= {part.uuid for gpu in self._gpus for part in gpu.instances}
        self._holders: dict[tuple[str, str], tuple[str, ...]] = {}
        """(pod uid, container) -> uuids"""
        self._names: dict[str, str] = {}
        """Pod uid -> `namespace/pod`, of those that hold any."""
        self._changed = changed

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The GPUs with their users. A GPU that no pod has is idle, whatever its scenario says."""
        users = {
            device: f"{self._names[uid]}/{container}"
            for (uid, container), given in self._holders.items()
            for device in given
        }
        return tuple(_used(gpu, users) for gpu in self._gpus)

    def variables(
        self, pod: Pod, container: Container, claimed: tuple[str, ...] = ()
    ) -> dict[str, str]:
        """What the container's environment gets; its GPUs stay its own until `release`.

        `claimed` are the uuids that its claims have.
        """
        if self._gpus and is_gpu_exporter(container.image, container.command):
            return {EXPORTS: "true"}
        limits = container.resources.limits
        wanted = {name: quantities.whole(limits[name]) for name in self._devices if name in limits}
        if not any(wanted.values()) and not claimed:
            return {}
        given = self._holders.get((pod.metadata.uid, container.name))
        if given is None:
            free = (device for request in wanted.items() for device in self._free(*request))
            given = (*claimed, *free)
            self._give(pod, container.name, given)
        named = ",".join(given)
        return {VARIABLE: named, **({CUDA_VARIABLE: named} if claimed else {})}

    def recall(self, pod: Pod, container: str, value: str) -> None:
        """A container of an earlier agent has these."""
        given = tuple(device for device in value.split(",") if device in self._uuids)
        if given:
            self._give(pod, container, given)

    def release(self, pod_uid: str) -> None:
        held = [key for key in self._holders if key[0] == pod_uid]
        for key in held:
            del self._holders[key]
        self._names.pop(pod_uid, None)
        if held:
            self._tell()

    def _free(self, resource: str, count: int) -> list[str]:
        taken = {device for holding in self._holders.values() for device in holding}
        free = [device for device in self._devices[resource] if device not in taken]
        if len(free) < count:
            raise NoDevices(
                f"requested number of devices unavailable for {resource}. "
                f"Requested: {count}, Available: {len(free)}"
            )
        return free[:count]

    def _give(self, pod: Pod, container: str, given: tuple[str, ...]) -> None:
        meta = pod.metadata
        self._names[meta.uid] = f"{meta.namespace}/{meta.name}"
        self._holders[meta.uid, container] = given
        self._tell()

    def _tell(self) -> None:
        if self._changed is not None:
            self._changed(self.gpus)


def _devices(gpus: Iterable[Gpu]) -> Iterator[tuple[str, str]]:
    """What a device plugin can give away: (resource, uuid)."""
    for gpu in gpus:
        if not gpu.is_offered(Offer.DEVICE_PLUGIN):
            continue
        if not gpu.mig:
            yield RESOURCE, gpu.uuid
        for instance in gpu.instances:
            yield f"{MIG_RESOURCE}{instance.profile}", instance.uuid


def _used(gpu: Gpu, users: dict[str, str]) -> Gpu:
    instances = tuple(
        structs.replace(instance, user=users.get(instance.uuid, "")) for instance in gpu.instances
    )
    user = users.get(gpu.uuid, "")
    if user or gpu.always or any(instance.user for instance in instances):
        return structs.replace(gpu, user=user, instances=instances)
    return structs.replace(gpu, load=Load.IDLE, steady=_resting(gpu), instances=instances)


def _resting(gpu: Gpu) -> Steady:
    """The fixed readings of an unused GPU: those of the scenario only where its load is idle."""
    return gpu.steady if gpu.load is Load.IDLE else Steady()

"""GPUs for dynamic allocation, with the names and attributes of NVIDIA's driver. Pure.

Devices are named as that driver names them: `gpu-0`, and for MIG instances the GPU, the profile's
number and the place among the GPU's memory slices, `gpu-0-mig-19-2-1`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kvestigate.cluster.node.gpu.model import CUDA, DRIVER, MODELS, Gpu, Instance, Offer, bus

DRA_DRIVER = "gpu.nvidia.com"
_MIG_CLASS = "mig.nvidia.com"
_DEVICES_MAX = 128
"""As many devices fit into one slice."""
_PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
_MIG_PROFILES = {"1g": (19, 1), "2g": (14, 2), "3g": (9, 4), "4g": (5, 4), "7g": (0, 8)}
"""By the share of compute: the profile's number, and how many memory slices it takes."""
_BRANDS = {"turing": "Tesla", "volta": "Tesla"}
_MULTIPROCESSORS = 14
"""Of one compute slice."""

Object = dict[str, Any]


def devices(gpus: Iterable[Gpu]) -> Iterator[tuple[str, str, Object]]:
    """(name, uuid, device) of all that can be claimed."""
    for gpu in gpus:
        if not gpu.is_offered(Offer.DRA):
            continue
        if not gpu.mig:
            name = f"gpu-{gpu.index}"
            yield name, gpu.uuid, _device(name, _attributes(gpu, "gpu", gpu.uuid), _memory(gpu))
            continue
        start = 0
        for instance in gpu.instances:
            number, size = _placement(instance)
            name = f"gpu-{gpu.index}-mig-{number}-{start}-{size}"
            yield name, instance.uuid, _part(name, gpu, instance, range(start, start + size))
            start += size


def resource_slices(node: str, uid: str, gpus: Iterable[Gpu], generation: int = 1) -> list[Object]:
    """What a driver on the node publishes; `uid` is that of the Node, which owns the slices."""
    listed = [device for _, _, device in devices(gpus)]
    parts = [listed[start : start + _DEVICES_MAX] for start in range(0, len(listed), _DEVICES_MAX)]
    pool = {"name": node, "generation": generation, "resourceSliceCount": len(parts)}
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {
                "name": f"{node}-{DRA_DRIVER}-{number}",
                **({"ownerReferences": [owner]} if uid else {}),
            },
            "spec": {"driver": DRA_DRIVER, "nodeName": node, "pool": pool, "devices": part},
        }
        for number, part in enumerate(parts)
    ]


def device_classes() -> list[Object]:
    """The classes that come with the driver: whole GPUs, and MIG instances."""
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": _is_of_type(kind)}}]},
        }
        for name, kind in ((DRA_DRIVER, "gpu"), (_MIG_CLASS, "mig"))
    ]


def _is_of_type(kind: str) -> str:
    own = f"device.attributes['{DRA_DRIVER}']"
    return f"device.driver == '{DRA_DRIVER}' && {own}.type == '{kind}'"


def _device(name: str, attributes: Object, capacity: Mapping[str, str]) -> Object:
    amounts = {key: {"value": value} for key, value in capacity.items()}
    return {"name": name, "attributes": attributes, "capacity": amounts}


def _attributes(gpu: Gpu, kind: str, uuid: str) -> Object:
    model = MODELS[gpu.model]
    texts = {
        "type": kind,
        "uuid": uuid,
        "productName": model.name,
        "brand": _BRANDS.get(model.architecture, "Nvidia"),
        "architecture": model.architecture.replace("-", " ").title(),
        "pcieBusID": bus(gpu)[4:].lower(),
        "addressingMode": "None",
        _PCIE_ROOT: "pci0000:00",
    }
    versions = {
        "cudaComputeCapability": model.capability,
        "driverVersion": DRIVER,
        "cudaDriverVersion": CUDA,
    }
    return {
        **{name: {"string": text} for name, text in texts.items()},
        **{name: {"version": _semantic(text)} for name, text in versions.items()},
    }


def _semantic(version: str) -> str:
    """Three numbers without leading zeros."""
    return ".".join(str(int(part)) for part in (*version.split("."), "0", "0")[:3])


def _memory(gpu: Gpu) -> dict[str, str]:
    return {"memory": f"{MODELS[gpu.model].memory_mib}Mi"}


def _placement(instance: Instance) -> tuple[int, int]:
    return _MIG_PROFILES.get(instance.profile.partition(".")[0], (0, 1))


def _part(name: str, gpu: Gpu, instance: Instance, place: Iterable[int]) -> Object:
    compute = instance.profile.partition("g")[0]
    shares = int(compute) if compute.isdigit() else 1
    attributes = _attributes(gpu, "mig", instance.uuid) | {
        "parentUUID": {"string": gpu.uuid},
        "profile": {"string": instance.profile},
    }
    capacity = {
        "memory": f"{instance.memory_mib}Mi",
        "multiprocessors": str(_MULTIPROCESSORS * shares),
        "copyEngines": str(shares),
        "decoders": str(shares // 2),
        "encoders": "0",
        "jpegEngines": "0",
        "ofaEngines": "0",
        **{f"memorySlice{number}": "1" for number in place},
    }
    return _device(name, attributes, capacity)

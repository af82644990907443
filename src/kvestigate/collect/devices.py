"""GPUs among the resources of a pod: whole devices, MIG instances, shares, slices. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kvestigate.collect.record import DeviceRecord
from kvestigate.kube.views.pods import PodResourceClaim

FRACTION = "gpu-fraction"
"""The annotation by which schedulers that divide devices are asked for a part of one."""

_MIG = "nvidia.com/mig-"
SHARED = ".shared"

# Sizes of a share, not numbers of devices: memory, cores, percentages, tiles.
_SLICES = ("mem", "core", "percent", "tile", "monitoring", "priority")


def gpu_amounts(amounts: Mapping[str, int]) -> dict[str, int]:
    """Those of the amounts that are of GPUs."""
    return {
        name: amount
        for name, amount in sorted(amounts.items())
        if amount and ("gpu" in name.lower() or name.startswith(_MIG))
    }


def count(amounts: Mapping[str, int], fraction: float | None) -> int:
    """Devices or shares that are handed out; a slice of unstated number is of one device."""
    devices = sum(amount for name, amount in amounts.items() if not _is_slice(name))
    return devices or int(bool(amounts) or fraction is not None)


def fraction_of(annotations: Mapping[str, str]) -> float | None:
    """The part of a device that an annotation asks for; None if it is absent or makes no sense."""
    if FRACTION not in annotations:
        return None
    try:
        fraction = round(float(annotations[FRACTION]), 3)
    except ValueError:
        return None
    return fraction if 0 < fraction < 1 else None


def devices(amounts: Mapping[str, int], claims: Iterable[PodResourceClaim]) -> list[DeviceRecord]:
    """GPUs by kind, then claims by the object that says what they ask for."""
    gpus = [DeviceRecord(_kind(name), name, amount) for name, amount in amounts.items()]
    named = (
        claim.resource_claim_template_name or claim.resource_claim_name or "" for claim in claims
    )
    return [*gpus, *(DeviceRecord("claim", name) for name in named if name)]


def _kind(resource: str) -> str:
    if _is_slice(resource) or resource.endswith(SHARED):
        return "share"
    return "partition" if resource.startswith(_MIG) else "gpu"


def _is_slice(name: str) -> bool:
    if name.startswith(_MIG):
        return False
    # `gpu.intel.com/i915` counts devices, `gpu.intel.com/memory.max` and `/gpumem` do not.
    last = name.rpartition("/")[2].lower()
    return any(word in last for word in _SLICES)

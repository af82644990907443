"""GPUs and what they are doing. The load is a function of time, so nothing has to run. Pure."""

from __future__ import annotations

import enum
import math
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
from msgspec import structs

RESOURCE = "nvidia.com/gpu"
MIG_RESOURCE = "nvidia.com/mig-"
"""Before the profile, where instances are offered as resources of their own."""
UUIDS = "kvestigate.dev/gpu-uuids"
"""The annotation of a node with its GPUs' uuids, in the order of their indices."""
VARIABLE = "NVIDIA_VISIBLE_DEVICES"
"""Tells a container which GPUs are its own."""
CUDA_VARIABLE = "CUDA_VISIBLE_DEVICES"
"""Tells programs of a container which GPUs its claims have."""
EXPORTS = "KVESTIGATE_EXPORTS_GPUS"
"""Marks a container of the GPU exporter, in whose place its node answers."""

DRIVER = "580.95.05"
CUDA = "13.0"
"""The newest that the driver supports."""

_NAMESPACE = uuid.UUID("7a1f3c5e-9b64-4e0a-8a5d-1f0c6b2d4e90")
_BURST_SECONDS = 60.0


class Load(enum.Enum):
    """What a scenario lets a GPU do."""

    IDLE = "idle"
    """Nothing, and nothing is allocated on it."""
    RESERVED_IDLE = "reserved-idle"
    """Memory is taken, but nothing computes."""
    BUSY = "busy"
    BURSTY = "bursty"
    """Busy for half of every minute."""
    HOT = "hot"
    """Busy, and close to its temperature limit."""


class Offer(enum.Enum):
    """How a node offers a GPU to pods: in one way only, or two pods could get the same GPU."""

    DEVICE_PLUGIN = "device-plugin"
    """As a resource, `nvidia.com/gpu`, or one for each MIG profile."""
    DRA = "dra"
    """As a device of a ResourceSlice, for dynamic resource allocation."""


@dataclass(frozen=True, slots=True)
class Model:
    """What a kind of GPU is."""

    name: str
    memory_mib: int
    watts: int
    architecture: str
    capability: str


MODELS = {
    "A100": Model("NVIDIA A100-SXM4-80GB", 81920, 400, "ampere", "8.0"),
    "B200": Model("NVIDIA B200", 183359, 1000, "blackwell", "10.0"),
    "H100": Model("NVIDIA H100 80GB HBM3", 81559, 700, "hopper", "9.0"),
    "H200": Model("NVIDIA H200", 143771, 700, "hopper", "9.0"),
    "L4": Model("NVIDIA L4", 23034, 72, "ada-lovelace", "8.9"),
    "L40S": Model("NVIDIA L40S", 46068, 350, "ada-lovelace", "8.9"),
    "RTX6000": Model(
        "NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, 600, "blackwell", "12.0"
    ),
    "T4": Model("Tesla T4", 15360, 70, "turing", "7.5"),
    "V100": Model("Tesla V100-SXM2-16GB", 16384, 300, "volta", "7.0"),
}


class Reading(msgspec.Struct, frozen=True):
    """What sensors would say."""

    utilization: int
    memory_mib: int
    temperature: int
    watts: float
    fan: int = 0


class Steady(msgspec.Struct, frozen=True, omit_defaults=True):
    """Sensors that say the same whenever the GPU is at work; None: as the load has it."""

    utilization: int | None = None
    memory_mib: int | None = None
    temperature: int | None = None
    watts: float | None = None


class Throttle(enum.Enum):
    """Why a GPU runs slower than it could, by the names and bits of NVML."""

    SW_POWER_CAP = "sw_power_cap"
    HW_SLOWDOWN = "hw_slowdown"
    SW_THERMAL = "sw_thermal_slowdown"
    HW_THERMAL = "hw_thermal_slowdown"
    HW_POWER_BRAKE = "hw_power_brake_slowdown"


THROTTLE_BITS = {
    Throttle.SW_POWER_CAP: 0x4,
    Throttle.HW_SLOWDOWN: 0x8,
    Throttle.SW_THERMAL: 0x20,
    Throttle.HW_THERMAL: 0x40,
    Throttle.HW_POWER_BRAKE: 0x80,
}
_IDLE_BIT = 0x1
PCIE_WIDTH, PCIE_GEN, SLOWDOWN_AT = 16, 5, 92
"""Of a healthy GPU; the last is a temperature."""


class RowRemap(enum.Enum):
    """How the replacement of faulty memory rows stands."""

    NONE = "none"
    PENDING = "pending"
    """Done with the next reset of the GPU."""
    FAILED = "failed"
    """The GPU has no spare memory rows left to replace broken ones."""


class Condition(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is wrong with a GPU, used or not."""

    lost: bool = False
    """Fallen off the bus: the driver knows the GPU and cannot reach it."""
    xid: int = 0
    """The last Xid error; 0 for none."""
    ecc: int = 0
    """Uncorrectable memory errors since the driver was loaded."""
    ecc_lifetime: int = 0
    row_remap: RowRemap = RowRemap.NONE
    throttle: tuple[Throttle, ...] = ()
    pcie_width: int = PCIE_WIDTH
    nvlink_errors: int = 0


class Instance(msgspec.Struct, frozen=True):
    """A part of a GPU that is given away on its own (MIG)."""

    uuid: str
    profile: str
    """`1g.10gb`"""
    user: str = ""

    @property
    def memory_mib(self) -> int:
        """The memory that the profile names."""
        size = self.profile.rpartition(".")[2].partition("gb")[0]
        return int(size) * 1024 if size.isdigit() else 0


class Gpu(msgspec.Struct, frozen=True):
    """One GPU of one node."""

    index: int
    uuid: str
    model: str
    """A key of `MODELS`."""
    load: Load = Load.IDLE
    always: bool = False
    """Shows its load even when no pod has it: a process outside of Kubernetes uses it."""
    steady: Steady = Steady()
    condition: Condition = Condition()
    seed: int = 0
    """Lets GPUs of the same load sway differently."""
    instances: tuple[Instance, ...] = ()
    """MIG instances. With any, MIG is on, and the whole GPU is not allocated to pods."""
    offer: Offer = Offer.DEVICE_PLUGIN
    user: str = ""
    """`namespace/pod/container` that the GPU is allocated to; empty if it is free."""
    pid: int = 0
    place: int | None = None
    """The index within the container that looks; None if the container sees all GPUs."""

    @property
    def number(self) -> int:
        """The number by which the container that looks knows it."""
        return self.index if self.place is None else self.place

    @property
    def mig(self) -> bool:
        return bool(self.instances)

    def is_offered(self, offer: Offer) -> bool:
        """Whether pods can get it in this way: a GPU that the driver has lost, in none."""
        return self.offer is offer and not self.condition.lost


def gpu_uuid(node: str, index: int) -> str:
    """Follows from the node's name, so that it is the same each time."""
    return f"GPU-{uuid.uuid5(_NAMESPACE, f'{node}/{index}')}"


def instances(gpu: str, profiles: Iterable[str]) -> tuple[Instance, ...]:
    """The MIG instances of the GPU with this uuid."""
    return tuple(
        Instance(f"MIG-{uuid.uuid5(_NAMESPACE, f'{gpu}/{number}')}", profile)
        for number, profile in enumerate(profiles)
    )


def node_gpus(node: str, count: int, model: str, loads: tuple[Load, ...] = ()) -> tuple[Gpu, ...]:
    """The GPUs of a node."""
    return tuple(
        Gpu(
            index,
            gpu_uuid(node, index),
            model,
            loads[index % len(loads)] if loads else Load.IDLE,
        )
        for index in range(count)
    )


def reading(gpu: Gpu, now: float) -> Reading:
    """What the sensors of a GPU show at a time."""
    load = gpu.load
    if load is Load.BURSTY:
        at_work = (now + gpu.seed) % _BURST_SECONDS < _BURST_SECONDS / 2
        load = Load.BUSY if at_work else Load.RESERVED_IDLE
    shown = _of_load(gpu, load, now)
    if load is Load.RESERVED_IDLE and gpu.load is Load.BURSTY:
        return shown
    fixed = {name: value for name, value in structs.asdict(gpu.steady).items() if value is not None}
    return structs.replace(shown, **fixed) if fixed else shown


def bus(gpu: Gpu) -> str:
    """The PCI bus id."""
    return f"00000000:{0x07 + 8 * gpu.index:02X}:00.0"


def clock_mhz(now: Reading) -> int:
    """The clock of the streaming multiprocessors."""
    return 1410 if now.utilization else 210


def lifetime_errors(gpu: Gpu) -> int:
    """Uncorrectable memory errors in the GPU's life."""
    return max(gpu.condition.ecc, gpu.condition.ecc_lifetime)


def throttle_bits(gpu: Gpu, now: Reading) -> int:
    """Why the clocks are as they are, as NVML's bits."""
    bits = sum(THROTTLE_BITS[reason] for reason in gpu.condition.throttle)
    return bits or (0 if now.utilization else _IDLE_BIT)


def _of_load(gpu: Gpu, load: Load, now: float) -> Reading:
    model = MODELS[gpu.model]
    # A little life, the same for everybody who looks in the same moment.
    sway = math.sin(now / 7 + gpu.index + gpu.seed)
    if load is Load.IDLE:
        return Reading(0, 4, 31 + gpu.index % 3, round(model.watts * 0.14, 2))
    if load is Load.RESERVED_IDLE:
        return Reading(0, int(model.memory_mib * 0.62), 36, round(model.watts * 0.18, 2))
    used = int(model.memory_mib * 0.86)
    if load is Load.HOT:
        return Reading(99, used, 88 + round(sway), round(model.watts * 0.99, 2), 100)
    busy = 93 + round(5 * sway)
    return Reading(busy, used, 66 + round(3 * sway), round(model.watts * (0.8 + 0.05 * sway), 2))


def node_labels(gpus: tuple[Gpu, ...]) -> dict[str, str]:
    """NVIDIA's usual labels."""
    if not gpus:
        return {}
    model = MODELS[gpus[0].model]
    major, minor = model.capability.split(".")
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.count": str(len(gpus)),
        "nvidia.com/gpu.product": model.name.replace(" ", "-"),
        "nvidia.com/gpu.memory": str(model.memory_mib),
        "nvidia.com/gpu.family": model.architecture,
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/mig.capable": "true" if model.architecture in _DIVISIBLE else "false",
        **_version_labels(),
        **_mig_labels(gpus),
    }


def _version_labels() -> dict[str, str]:
    """Whole and in parts, under the names of today and of before."""
    driver = dict(zip(("major", "minor", "revision"), DRIVER.split("."), strict=True))
    runtime = dict(zip(("major", "minor"), CUDA.split("."), strict=True))
    return {
        "nvidia.com/cuda.driver-version.full": DRIVER,
        "nvidia.com/cuda.runtime-version.full": CUDA,
        **{f"nvidia.com/cuda.driver-version.{part}": text for part, text in driver.items()},
        **{f"nvidia.com/cuda.runtime-version.{part}": text for part, text in runtime.items()},
        "nvidia.com/cuda.driver.major": driver["major"],
        "nvidia.com/cuda.driver.minor": driver["minor"],
        "nvidia.com/cuda.driver.rev": driver["revision"],
        "nvidia.com/cuda.runtime.major": runtime["major"],
        "nvidia.com/cuda.runtime.minor": runtime["minor"],
    }


_DIVISIBLE = ("ampere", "hopper", "blackwell")


def _mig_labels(gpus: tuple[Gpu, ...]) -> dict[str, str]:
    profiles = _profiles(gpus)
    if not profiles:
        return {}
    counts = {f"{MIG_RESOURCE}{name}.count": str(count) for name, count in profiles.items()}
    return {"nvidia.com/mig.strategy": "mixed", "nvidia.com/mig.config": "custom", **counts}


def gpu_capacity(gpus: tuple[Gpu, ...]) -> dict[str, str]:
    """What a device plugin offers of these: whole GPUs, and instances of others by profile."""
    offered = [gpu for gpu in gpus if gpu.is_offered(Offer.DEVICE_PLUGIN)]
    if not offered:
        return {}
    whole = sum(not gpu.mig for gpu in offered)
    parts = {f"{MIG_RESOURCE}{name}": str(count) for name, count in _profiles(offered).items()}
    return {RESOURCE: str(whole), **parts}


def gpu_annotations(gpus: tuple[Gpu, ...]) -> dict[str, str]:
    return {UUIDS: ",".join(gpu.uuid for gpu in gpus)} if gpus else {}


def _profiles(gpus: Iterable[Gpu]) -> Counter[str]:
    return Counter(instance.profile for gpu in gpus for instance in gpu.instances)

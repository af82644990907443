"""The GPUs that ResourceSlices offer, and the claims that hold them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kvestigate.kube.views.devices import DeviceClass
from kvestigate.snapshot.device_kinds import (
    PARTITION,
    DeviceClaim,
    DeviceSlice,
    SliceDevice,
    kind_of,
)
from kvestigate.snapshot.ledger.model import UNKNOWN_GPU, Count, Device, Offer, Right, Waiting

DeviceId = tuple[str, str, str]
"""Driver, pool and name."""
Offered = tuple[Device, bool]
"""A device, and whether its taints withhold it."""

_REPELLING = ("NoSchedule", "NoExecute")


def gpus_of(slices: Iterable[DeviceSlice], claims: Iterable[DeviceClaim] | None) -> list[Offered]:
    """Every GPU and partition that is offered; `claims` is None if they are unknown."""
    holders = None if claims is None else _holders(claims)
    return [
        (_device(driver, pool, node, device, holders), _is_withheld(device))
        for driver, pool, node, device in _current(slices)
        if kind_of(driver, device.facts)
    ]


def others_of(slices: Iterable[DeviceSlice]) -> dict[str, int]:
    """Driver -> devices that are no GPUs."""
    counts: dict[str, int] = {}
    for driver, _, _, device in _current(slices):
        if not kind_of(driver, device.facts):
            counts[driver] = counts.get(driver, 0) + 1
    return counts


def _current(slices: Iterable[DeviceSlice]) -> Iterator[tuple[str, str, str, SliceDevice]]:
    """Driver, pool, node and device; of a pool that is being replaced, the newest slices."""
    slices = list(slices)
    newest: dict[tuple[str, str], int] = {}
    for piece in slices:
        key = (piece.spec.driver, piece.spec.pool.name)
        newest[key] = max(newest.get(key, 0), piece.spec.pool.generation)
    for piece in slices:
        spec = piece.spec
        if spec.pool.generation < newest[spec.driver, spec.pool.name]:
            continue
        for device in spec.devices:
            yield spec.driver, spec.pool.name, spec.node_name or device.node_name, device


def _device(
    driver: str,
    pool: str,
    node: str,
    device: SliceDevice,
    holders: dict[DeviceId, list[DeviceClaim]] | None,
) -> Device:
    facts = device.facts
    key = (driver, pool, device.name)
    held = None if holders is None else holders.get(key, [])
    own = "/".join(key)
    partition = kind_of(driver, facts) == PARTITION
    return Device(
        uuid=facts.uuid or own,
        node=node,
        index=facts.index,
        user=None if held is None else ", ".join(_users(held)),
        parent=(facts.parent or UNKNOWN_GPU) if partition else "",
        profile=facts.profile,
        model=facts.model,
        memory_mib=facts.memory_mib,
        offer=Offer.DRA,
        right=Right.CLAIM if held else None,
        claims=None if held is None else tuple(map(_path, held)),
    )


def _is_withheld(device: SliceDevice) -> bool:
    return any(taint.effect in _REPELLING for taint in device.taints)


def _holders(claims: Iterable[DeviceClaim]) -> dict[DeviceId, list[DeviceClaim]]:
    """Admin access takes nothing away from others: it is no holding."""
    holders: dict[DeviceId, list[DeviceClaim]] = {}
    for claim in claims:
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation else ():
            if not result.admin_access:
                key = (result.driver, result.pool, result.device)
                holders.setdefault(key, []).append(claim)
    return holders


def _users(claims: Sequence[DeviceClaim]) -> Iterator[str]:
    """The pods that a claim is reserved for; an allocated claim without one is its own user."""
    for claim in claims:
        pods = [user.name for user in claim.status.reserved_for if user.resource == "pods"]
        namespace = claim.metadata.namespace
        yield from (f"{namespace}/{pod}" for pod in pods)
        if not pods:
            yield f"claim {_path(claim)}"


def _path(claim: DeviceClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


def counts(offered: Iterable[Offered]) -> tuple[Count, Count]:
    """Whole GPUs and partitions.

    A GPU may be offered whole and in parts, of which only some are possible at a time. It counts
    as whole until one of its parts is allocated; from then on its allocated parts count.
    """
    by_gpu: dict[str, list[Offered]] = {}
    for entry in offered:
        by_gpu.setdefault(entry[0].physical, []).append(entry)
    whole = partitions = Count()
    for entries in by_gpu.values():
        parts = [entry for entry in entries if entry[0].parent]
        undivided = [entry for entry in entries if not entry[0].parent]
        if undivided and parts:
            parts = [entry for entry in parts if entry[0].right is not None]
            undivided = [] if parts else undivided
        whole += _counted(undivided)
        partitions += _counted(parts)
    return whole, partitions


def _counted(entries: Sequence[Offered]) -> Count:
    offered = [device for device, withheld in entries if not withheld or device.right]
    known = all(device.user is not None for device, _ in entries)
    return Count(len(offered), sum(bool(device.right) for device in offered) if known else None)


def waiting_claims(
    claims: Iterable[DeviceClaim], classes: Iterable[DeviceClass], drivers: Iterable[str]
) -> Waiting:
    """GPUs that unallocated claims ask for, of classes that select devices of a GPU driver."""
    forms = {each.metadata.name: _form(each, set(drivers)) for each in classes}
    asked: dict[str, int] = {"gpu": 0, "partition": 0, "": 0}
    for claim in claims:
        if claim.status.allocation is not None or claim.metadata.deletion_timestamp is not None:
            continue
        for request in claim.spec.devices.requests:
            wanted = request.preferred
            if not wanted.admin_access:
                asked[forms.get(wanted.device_class_name, "")] += wanted.count
    return Waiting(asked["gpu"], asked["partition"])


def _form(device_class: DeviceClass, drivers: set[str]) -> str:
    """`gpu`, `partition`, or empty, by what the expressions of the class compare with."""
    name = device_class.metadata.name
    text = " ".join(selector.cel.expression for selector in device_class.spec.selectors)
    if not any(driver in text for driver in drivers) and not name.startswith(("gpu.", "mig.")):
        return ""
    quoted = text.replace('"', "'")
    if "'mig'" in quoted or name.startswith("mig."):
        return "partition"
    return "" if any(word in quoted for word in ("'channel'", "'daemon'")) else "gpu"

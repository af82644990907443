"""The ledger of a snapshot. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kvestigate.kube.requests import Amounts
from kvestigate.kube.views.core import Node
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import requested
from kvestigate.snapshot.exporters import GpuReading
from kvestigate.snapshot.gpus import Consumer, consumers, occupied
from kvestigate.snapshot.ledger.claimable import Offered, gpus_of, waiting_claims
from kvestigate.snapshot.ledger.hosts import form_of, node_gpus, pooled_gpus
from kvestigate.snapshot.ledger.model import Device, Ledger, NodeGpus, Offer, Right, Waiting
from kvestigate.snapshot.model import Snapshot

UUIDS = "kvestigate.dev/gpu-uuids"
"""The annotation of embedded nodes with the uuids of their GPUs, sorted by index."""

COUNTS = (
    listings.NODES,
    listings.PODS,
    listings.DEVICE_SLICES,
    listings.RESOURCE_CLAIMS,
)
"""What the counts of `NodeGpus` are made of."""
NEEDS = (*COUNTS, listings.DEVICE_CLASSES, listings.GPU_READINGS)
"""What a whole ledger is made of. From a snapshot of `COUNTS` alone, nothing waits, and only
annotations and ResourceSlices tell devices apart."""


def ledger(snapshot: Snapshot) -> Ledger:
    """For `Snapshot.derived`: every report and rule about GPUs reads this one."""
    nodes, pods = snapshot.known(listings.NODES), snapshot.known(listings.PODS)
    slices = snapshot.known(listings.DEVICE_SLICES)
    claims = snapshot.known(listings.RESOURCE_CLAIMS)
    claimable = gpus_of(slices or (), claims)
    readings = snapshot.listed.get(listings.GPU_READINGS, ())
    devices = identified(nodes or (), readings, claimable)
    users = None if pods is None else consumers(pods)
    waiting = None
    classes = snapshot.listed.get(listings.DEVICE_CLASSES)
    if users is not None and claims is not None and classes is not None:
        drivers = {piece.spec.driver for piece in slices or ()}
        gpu_drivers = {driver for driver in drivers if driver.startswith("gpu.")}
        waiting = _waiting(users, waiting_claims(claims, classes, gpu_drivers))
    taken = None if pods is None else snapshot.derived(requested)
    return Ledger(
        nodes=None if nodes is None else stocks(nodes, taken, devices, claimable),
        devices=devices,
        consumers=users,
        waiting=waiting,
        slices_known=slices is not None,
    )


def stocks(
    nodes: Iterable[Node],
    requested: Mapping[str, Amounts] | None,
    devices: Iterable[Device] = (),
    claimable: Iterable[Offered] = (),
) -> tuple[NodeGpus, ...]:
    """The nodes with GPUs, by name. `requested` is by node; None if it is unknown."""
    known: dict[str, list[Device]] = {}
    for device in devices:
        known.setdefault(device.node, []).append(device)
    offered: dict[str, list[Offered]] = {}
    for entry in claimable:
        offered.setdefault(entry[0].node, []).append(entry)
    rows = []
    for node in nodes:
        name = node.metadata.name
        taken = None if requested is None else requested.get(name, {})
        row = node_gpus(node, taken, known.get(name, ()), offered.get(name, ()))
        if row is not None:
            rows.append(row)
    if "" in offered:
        rows.append(pooled_gpus(offered[""]))
    return tuple(sorted(rows, key=lambda row: row.node))


def identified(
    nodes: Iterable[Node], readings: Iterable[GpuReading], claimable: Sequence[Offered] = ()
) -> tuple[Device, ...]:
    """Every GPU and partition that something tells apart: a uuid, or the name of a DRA device."""
    by_uuid: dict[str, Device] = {}
    for node in nodes:
        uuids = node.metadata.annotations.get(UUIDS, "")
        for index, uuid in enumerate(filter(None, uuids.split(","))):
            by_uuid[uuid] = Device(uuid, node.metadata.name, str(index))
    for device, _ in claimable:
        known = by_uuid.get(device.uuid)
        if known is not None and not device.index:
            device = replace(device, index=known.index)
        by_uuid[device.uuid] = device
    divided = {device.parent for device, _ in claimable if device.parent}
    for reading in readings:
        if reading.uuid:
            _read(reading, by_uuid, divided)
    return tuple(sorted(by_uuid.values(), key=_place))


def _read(reading: GpuReading, by_uuid: dict[str, Device], divided: set[str]) -> None:
    """Enter what an exporter measured. It knows MIG instances by other names than DRA does."""
    gpu, instance, _ = reading.uuid.partition("/")
    user = "/".join(part for part in (reading.namespace, reading.pod, reading.container) if part)
    uuid = reading.uuid
    if instance and gpu in divided:
        same = [
            device.uuid
            for device in by_uuid.values()
            if device.parent == gpu
            and device.user == f"{reading.namespace}/{reading.pod}"
            and device.profile == reading.profile
        ]
        if len(same) != 1:
            return
        uuid = same[0]
    elif instance:
        by_uuid.setdefault(gpu, Device(gpu, reading.node, reading.index, model=reading.model))
    known = by_uuid.get(uuid)
    if known is None or known.offer is not Offer.DRA:
        offer = Offer.MIG if instance else Offer.PLUGIN if user else Offer.UNKNOWN
        known = Device(
            uuid,
            reading.node,
            reading.index,
            user,
            parent=gpu if instance else "",
            profile=reading.profile,
            model=reading.model,
            offer=offer,
            right=Right.REQUEST if user else None,
        )
    right = known.right
    if right is None and occupied(reading.utilization, reading.memory_used_mib):
        right = Right.NONE
    by_uuid[uuid] = replace(
        known,
        utilization=reading.utilization,
        memory_used_mib=reading.memory_used_mib,
        right=right,
    )


def _place(device: Device) -> tuple[str, int, str, int, str]:
    """Sorts by node, then by number: 2 before 10."""
    return device.node, len(device.index), device.index, len(device.uuid), device.uuid


def _waiting(users: Iterable[Consumer], claimed: Waiting) -> Waiting:
    asked = {"whole": claimed.whole, "partitions": claimed.partitions, "shares": claimed.shares}
    for user in users:
        if not user.node:
            asked[form_of(user.resource, {})] += user.amount
    return Waiting(**asked)

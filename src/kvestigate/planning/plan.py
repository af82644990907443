"""`plan`: read the free capacity, and place a workload by every strategy."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Annotated

from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.errors import Forbidden, InputError, UsageError, did_you_mean
from kvestigate.kube import quantities
from kvestigate.kube.requests import CPU, MEMORY, Amounts
from kvestigate.kube.requests import PODS as POD_SLOTS
from kvestigate.kube.selectors import parse_labels
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import CondensedPod as Pod
from kvestigate.kube.views.pods import PodSpec
from kvestigate.operation import param
from kvestigate.planning.constraints import wants_gpus
from kvestigate.planning.explain import problem, ways_out
from kvestigate.planning.manifest import Workload, read
from kvestigate.planning.model import GPU, Demand, Placement
from kvestigate.planning.nodes import (
    broken_gpus,
    candidates,
    scheduler_refusals,
    uses_host_ports,
)
from kvestigate.planning.rules import preferences, rules_of
from kvestigate.planning.solve import most, place
from kvestigate.planning.strategies import NAMES, STRATEGIES
from kvestigate.render.human import counted
from kvestigate.snapshot import listings, scheduling
from kvestigate.snapshot.collect import take
from kvestigate.snapshot.exporters import GpuExporters
from kvestigate.snapshot.gpus import MIG_PREFIX, vendor_of
from kvestigate.snapshot.ledger.claimable import counts, gpus_of
from kvestigate.snapshot.model import Snapshot
from kvestigate.snapshot.scheduling import CLAIMS, CLASSES, NODES, PODS, VOLUMES
from kvestigate.snapshot.source import Progress

SCHEMA = "kvestigate.plan/v1"
_MIB = 1024 * 1024
_PROFILE = re.compile(r"[0-9]+g\.[0-9]+gb(?:\+[a-z.]+)?")
_PLUGINS_ONLY = "only GPUs of device plugins count"
_UNKNOWN_HEALTH = "whether GPUs are broken is unknown: reading the GPU exporters is forbidden"


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Amounts are for one replica; they override the manifest."""

    gpu: (
        Annotated[int, param("GPUs of each replica.", metavar="COUNT", lowest=0, highest=1024)]
        | None
    ) = None
    gpu_memory: Annotated[str, param("Memory that each GPU must have: 40Gi.", metavar="AMOUNT")] = (
        ""
    )
    mig: Annotated[
        str,
        param("MIG instances of this profile instead of whole GPUs: 1g.10gb.", metavar="PROFILE"),
    ] = ""
    cpu: Annotated[str, param("CPU of each replica: 8, 500m.", metavar="AMOUNT")] = ""
    memory: Annotated[str, param("Memory of each replica: 64Gi.", metavar="AMOUNT")] = ""
    replicas: (
        Annotated[
            int,
            param(
                "Number of replicas; default 1, or the manifest's.",
                metavar="COUNT",
                lowest=1,
                highest=1_000_000,
            ),
        ]
        | None
    ) = None
    one_per_node: Annotated[bool, param("At most one replica on a node.")] = False
    single_node: Annotated[bool, param("All replicas on the same node.")] = False
    labels: Annotated[
        tuple[str, ...],
        param("Only nodes with this label: key=value.", "--label", metavar="SELECTOR"),
    ] = ()
    exclude: Annotated[tuple[str, ...], param("Do not use this node.", metavar="NODE")] = ()
    strategy: Annotated[
        str, param(f"Show only this strategy: {', '.join(NAMES)}.", metavar="NAME")
    ] = ""
    manifest: Annotated[str, param("The text of a manifest with one workload.")] = ""
    source: Annotated[str, param("The name of the manifest in messages.")] = "manifest"


@dataclass(frozen=True, slots=True)
class NodeRow:
    name: str
    free: Amounts
    """CPU in thousandths; `gpu` is the whole GPUs of any vendor."""
    slots: int
    """Replicas that fit; 0 on a node that cannot be used."""
    barred: str
    """Why the node cannot be used; empty if it can."""


@dataclass(frozen=True, slots=True)
class Proposal:
    strategy: str
    nodes: int
    """The number of nodes that get replicas."""
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    schema: str = SCHEMA
    captured_at: datetime
    """UTC."""
    server: str
    replicas: int
    need: Amounts
    """Of each replica."""
    fits: bool
    fitting: int
    """Replicas that fit, at most `replicas`."""
    problem: str
    """Why not all replicas fit; empty if they do."""
    ways_out: tuple[str, ...]
    notes: tuple[str, ...]
    """Preferences of the manifest and GPUs that the plan ignores, and what could not be read."""
    proposals: tuple[Proposal, ...]
    nodes: tuple[NodeRow, ...]


async def collect(access: Access, options: PlanOptions, progress: Progress | None = None) -> Plan:
    demand = demand_of(options, access.namespace)
    async with connect(access) as api:
        situation = await scheduling.read(api, progress)
        broken = await _broken(api) if wants_gpus(demand) else {}
        elsewhere = await _claimable(api) if _by_plugin_only(demand) else ""
    situation.require((NODES, PODS), "free capacity is unknown")
    if any(volume.persistent_volume_claim for volume in demand.spec.volumes):
        situation.require((CLAIMS, VOLUMES, CLASSES), "where the volumes are is unknown")
    _require_nodes(options.exclude, situation.nodes)
    return solved(
        demand,
        situation.nodes,
        situation.pods,
        options.strategy,
        when=situation.captured_at,
        server=str(access.server),
        refusals=scheduler_refusals(demand, situation.state()),
        broken=broken or {},
        unknown_health=broken is None,
        elsewhere=elsewhere,
    )


async def _broken(api: Api) -> dict[str, str] | None:
    """Node -> what is wrong with a GPU of it; None if the exporters may not be asked."""
    try:
        return broken_gpus((await GpuExporters().read(api, "", None)).items)
    except Forbidden:
        return None


def _by_plugin_only(demand: Demand) -> bool:
    """Whether GPUs are requested by a resource name, and no ResourceClaims beside them."""
    return wants_gpus(demand) and not demand.spec.resource_claims


async def _claimable(api: Api) -> str:
    snapshot = await take(api, (listings.DEVICE_SLICES, listings.RESOURCE_CLAIMS))
    return claimable_note(snapshot)


def claimable_note(snapshot: Snapshot) -> str:
    """The GPUs that no plan counts, because only ResourceClaims get them; empty without any."""
    slices = snapshot.known(listings.DEVICE_SLICES)
    if slices is None:
        [gap] = snapshot.missing((listings.DEVICE_SLICES,))
        why = f"cannot {gap.verb} {gap.resource}: {gap.message}"
        return f"{_PLUGINS_ONLY}: how many are offered to ResourceClaims is unknown: {why}"
    whole, partitions = counts(gpus_of(slices, snapshot.known(listings.RESOURCE_CLAIMS)))
    forms = ((whole.offered, "GPU"), (partitions.offered, "partition"))
    offered = " and ".join(counted(count, noun) for count, noun in forms if count)
    are = "is" if whole.offered + partitions.offered == 1 else "are"
    return f"{_PLUGINS_ONLY}: {offered} {are} offered to ResourceClaims instead" if offered else ""


def solved(
    demand: Demand,
    nodes: Sequence[Node],
    pods: Sequence[Pod],
    strategy: str = "",
    *,
    when: datetime,
    server: str,
    refusals: Mapping[str, str] = MappingProxyType({}),
    broken: Mapping[str, str] = MappingProxyType({}),
    unknown_health: bool = False,
    elsewhere: str = "",
) -> Plan:
    """Pure: the plan for these nodes and pods."""
    if uses_host_ports(demand):
        demand = replace(demand, one_per_node=True)
    rules = rules_of(demand, nodes, pods)
    demand, domains = rules.demand, rules.domains
    rated = candidates(rules, nodes, pods, refusals, broken)
    rooms = [node.room for node in rated if node.bar is None]
    fitting = most(rooms, demand.replicas, domains, single=demand.single_node)
    fits = fitting == demand.replicas
    proposals = []
    for candidate in STRATEGIES if fits else ():
        if strategy in ("", candidate.name):
            placement = place(candidate, rooms, demand.replicas, domains, single=demand.single_node)
            proposals.append(Proposal(candidate.name, len(placement), placement))
    return Plan(
        captured_at=when,
        server=server,
        replicas=demand.replicas,
        need={name: count for name, count in demand.need.items() if count},
        fits=fits,
        fitting=fitting,
        problem="" if fits else problem(demand, rated, fitting, domains),
        notes=(
            *preferences(demand.spec),
            *([_UNKNOWN_HEALTH] if unknown_health else []),
            *([elsewhere] if elsewhere and not fits else []),
        ),
        ways_out=() if fits else ways_out(demand, rated, fitting, domains),
        proposals=tuple(proposals),
        nodes=tuple(
            NodeRow(node.name, node.free, 0 if node.bar else node.slots, node.barred)
            for node in rated
        ),
    )


def demand_of(options: PlanOptions, namespace: str) -> Demand:
    """The demand of the options. Raises UsageError if they request no resources."""
    if options.strategy not in ("", *NAMES):
        raise UsageError(
            f"there is no strategy {options.strategy!r}", hint=f"use one of {', '.join(NAMES)}"
        )
    workload = read(options.manifest, options.source) if options.manifest else None
    need = _need(options, workload)
    if not any(need.values()):
        raise UsageError(
            "no resources are given for a replica",
            hint="give --gpu, --cpu or --memory, or -f MANIFEST with requests",
        )
    if options.one_per_node and options.single_node and (options.replicas or 1) > 1:
        raise UsageError(
            "--one-per-node and --single-node cannot be combined", hint="give only one of them"
        )
    replicas = workload.replicas if workload else 1
    return Demand(
        gpu_memory_mib=_gpu_memory(options, need),
        replicas=replicas if options.replicas is None else options.replicas,
        need={**need, POD_SLOTS: 1},
        one_per_node=options.one_per_node,
        single_node=options.single_node,
        labels=parse_labels(",".join(options.labels)),
        exclude=frozenset(options.exclude),
        spec=workload.spec if workload else PodSpec(),
        own_labels=workload.labels if workload else {},
        namespace=(workload.namespace if workload else "") or namespace,
    )


def _need(options: PlanOptions, workload: Workload | None) -> Amounts:
    need = dict(workload.need) if workload else {}
    if options.cpu:
        need[CPU] = _amount("cpu", options.cpu, quantities.millis)
    if options.memory:
        need[MEMORY] = _amount("memory", options.memory, quantities.whole)
    if options.gpu is not None or options.mig:
        # Replaces the GPUs of the manifest, of any vendor.
        need = {name: count for name, count in need.items() if not vendor_of(name)}
        count = 1 if options.gpu is None else options.gpu
        need[f"{MIG_PREFIX}{_profile(options.mig)}" if options.mig else GPU] = count
    negative = [name for name, count in need.items() if count < 0]
    if negative:
        raise UsageError(f"{negative[0]}: the amount is negative", hint="give 0 or more")
    return need


def _profile(written: str) -> str:
    if not _PROFILE.fullmatch(written):
        raise UsageError(
            f"--mig {written[:80]}: is not a MIG profile", hint="write for example 1g.10gb"
        )
    return written


def _gpu_memory(options: PlanOptions, need: Amounts) -> int:
    """In MiB; 0 for any."""
    if not options.gpu_memory:
        return 0
    if options.mig:
        raise UsageError(
            "--gpu-memory and --mig cannot be combined", hint="the profile says the memory"
        )
    if not any(amount and (name == GPU or vendor_of(name)) for name, amount in need.items()):
        raise UsageError("--gpu-memory: no GPUs are requested", hint="add --gpu COUNT")
    size = _amount("gpu-memory", options.gpu_memory, quantities.whole)
    if size <= 0:
        raise UsageError(f"--gpu-memory {options.gpu_memory}: is not more than 0")
    return -(-size // _MIB)


def _amount(name: str, written: str, count: Callable[[str], int]) -> int:
    try:
        return count(written)
    except InputError as error:
        raise InputError(error.message, where=f"--{name}", hint=error.hint) from error


def _require_nodes(names: Sequence[str], nodes: Sequence[Node]) -> None:
    known = [node.metadata.name for node in nodes]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, "see `kvestigate report run nodes`")
            raise UsageError(f"--exclude {name}: the node does not exist", hint=hint)

"""`optimize apply`: cordon the donors and evict the pods to move, in waves.

The plan is not made again. The cluster is read only to check that each move is still possible: a
pod that is no longer on its donor, or that could not start on its target, is kept. If a pod of a
wave is not evicted, there is no further wave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, TypeVar

from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.client.connect import connect
from kvestigate.errors import Forbidden, UsageError
from kvestigate.kube import builtins
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.policy import PodDisruptionBudget
from kvestigate.nodeops.cordon import set_cordoned
from kvestigate.nodeops.evict import GONE, Progress, evict_targets
from kvestigate.nodeops.selection import EvictionTarget, choose, held_back
from kvestigate.operation import GROUP, Context, duration, param
from kvestigate.optimize.collect import FleetSource, read
from kvestigate.optimize.consolidation import Consolidation, Tunables, plan
from kvestigate.optimize.steps import KEPT, Step, TargetRoom, steps
from kvestigate.snapshot.capacity import capacities, requested_by_node
from kvestigate.snapshot.pods import Pod as ObservedPod

SCHEMA = "kvestigate.optimize.apply/v1"
P = TypeVar("P")

_PODS = builtins.resource("pods")
_NODES = builtins.resource("nodes")
_BUDGETS = builtins.resource("poddisruptionbudgets")


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    source: Annotated[FleetSource, GROUP]
    tunables: Annotated[Tunables, GROUP] = field(default_factory=Tunables)
    wave_size: Annotated[
        int,
        param("Pods that are evicted at the same time.", metavar="COUNT", lowest=1, highest=10_000),
    ] = 4
    grace_seconds: (
        Annotated[
            int,
            param(
                "Grace period for pods to stop, instead of their own.",
                "--grace-period",
                metavar="SECONDS",
                lowest=0,
                highest=86_400,
            ),
        ]
        | None
    ) = None
    timeout: Annotated[
        float, duration("How long to wait in a wave for pods to terminate and for budgets.")
    ] = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    schema: str = SCHEMA
    applied: bool
    plan: Consolidation
    wave_size: int
    cordon: tuple[str, ...]
    """The donors, which are cordoned before the first wave."""
    steps: tuple[Step, ...]
    stopped: int = 0
    """The wave that failed; 0 if none did."""

    @property
    def nothing_to_do(self) -> bool:
        return not self.cordon

    @property
    def waves(self) -> int:
        return max((step.wave for step in self.steps), default=0)

    def count(self, outcome: str) -> int:
        return sum(step.outcome == outcome for step in self.steps)


async def apply(context: Context, options: ApplyOptions) -> Application:
    if options.wave_size < 1:
        raise UsageError(f"--wave-size {options.wave_size}: must be 1 or more")
    access = context.access
    fleet = await read(access, options.source)
    if (audit := options.source.audit) is not None and fleet.server != str(access.server):
        raise UsageError(
            f"{audit.name} is an audit of {fleet.server}, not of {access.server}",
            hint="select the audited cluster with --context, or use --live",
        )
    planned = plan(fleet, options.tunables)
    async with connect(access) as api:
        made, targets, reasons = await _look(api, planned, options.wave_size)
        cordon = tuple(sorted({step.donor for step in made if step.wave}))
        application = Application(
            applied=context.apply,
            plan=planned,
            wave_size=options.wave_size,
            cordon=cordon,
            steps=made,
        )
        if not context.apply:
            explained = tuple(_explained(step, reasons) for step in made)
            return replace(application, steps=explained)
        for donor in cordon:
            await set_cordoned(api, donor, True, apply=True)
        return await _waves(api, application, targets, options, context.progress)


_Targets = Mapping[tuple[str, str], EvictionTarget]
"""By namespace and name."""


async def _look(
    api: Api, planned: Consolidation, wave_size: int
) -> tuple[tuple[Step, ...], _Targets, Mapping[tuple[str, str], str]]:
    """The steps that are possible now, the pods to evict, and the budgets that block them."""
    if not planned.moves:
        return (), {}, {}
    names = {move.target for move in planned.moves}
    nodes = [
        item for item in (await api.list(_NODES, type=Node)).items if item.metadata.name in names
    ]
    running = [pod for name in sorted(names) for pod in await _pods_on(api, name, ObservedPod)]
    places = {
        node.metadata.name: TargetRoom(
            node, {resource: room.free(resource) for resource in room.allocatable}
        )
        for node, room in zip(nodes, capacities(nodes, requested_by_node(running)), strict=True)
    }
    pods = {
        (donor, pod.metadata.namespace, pod.metadata.name): pod
        for donor in sorted({move.donor for move in planned.moves})
        for pod in await _pods_on(api, donor, Pod)
    }
    pairs = [
        (move, pods.get((move.donor, move.namespace, move.pod)))
        for move in sorted(planned.moves, key=lambda move: move.donor)
    ]
    made = tuple(steps(pairs, places, wave_size))
    going = [pod for step, (_, pod) in zip(made, pairs, strict=True) if step.wave and pod]
    targets = {(target.namespace, target.name): target for target in choose(going).evict}
    held = await _budgets(api, going)
    reasons = {
        (pod.metadata.namespace, pod.metadata.name): held.get(pod.metadata.uid, "") for pod in going
    }
    return made, targets, reasons


async def _pods_on(api: Api, node: str, type: type[P]) -> Sequence[P]:
    where = Selection(None, fields=f"spec.nodeName={node}")
    return (await api.list(_PODS, where, type=type)).items


async def _budgets(api: Api, pods: Sequence[Pod]) -> dict[str, str]:
    """Pod uid -> the budget that blocks it; empty if budgets are forbidden."""
    try:
        budgets = (await api.list(_BUDGETS, type=PodDisruptionBudget)).items
    except Forbidden:
        return {}
    return held_back(pods, budgets)


def _explained(step: Step, reasons: Mapping[tuple[str, str], str]) -> Step:
    if step.outcome == KEPT:
        return step
    return replace(step, reason=reasons.get((step.namespace, step.pod), ""))


async def _waves(
    api: Api,
    application: Application,
    targets: _Targets,
    options: ApplyOptions,
    progress: Progress | None,
) -> Application:
    made = {(step.namespace, step.pod): step for step in application.steps}
    stopped = 0
    for wave in range(1, application.waves + 1):
        departures = await evict_targets(
            api,
            [targets[name] for name, step in made.items() if step.wave == wave],
            grace_seconds=options.grace_seconds,
            timeout=options.timeout,
            progress=progress,
        )
        for departure in departures:
            name = departure.namespace, departure.name
            made[name] = replace(made[name], outcome=departure.outcome, reason=departure.reason)
        if any(departure.outcome != GONE for departure in departures):
            stopped = wave
            break
    return replace(application, steps=tuple(made.values()), stopped=stopped)

"""`optimize apply`: cordon the donors and evict what is to move, in waves.

Nothing is planned anew. What the cluster says now is only asked whether each move can still be
made: a pod that is not where the plan has it, or could not come back on its target, is kept.
When a pod of a wave does not go, there is no further wave.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from msgspec import structs

from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.client.connect import connect
from kvestigate.errors import Forbidden, UsageError
from kvestigate.kube import builtins
from kvestigate.kube.eligibility import matches_node, untolerated
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.policy import PodDisruptionBudget
from kvestigate.nodeops.budgets import held_back
from kvestigate.nodeops.cordon import set_cordoned
from kvestigate.nodeops.evict import GONE, UNASKED, Progress, evict_targets
from kvestigate.nodeops.pods import Target, choose
from kvestigate.observe.capacity import is_ready
from kvestigate.optimize.collect import Source, read
from kvestigate.optimize.consolidation import Consolidation, Move, Tunables, plan

SCHEMA = "kvestigate.optimize.apply/v1"
KEPT = "kept"
"""The outcome of a move that is not tried."""

_PODS = builtins.resource("pods")
_NODES = builtins.resource("nodes")
_BUDGETS = builtins.resource("poddisruptionbudgets")


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    source: Source
    tunables: Tunables = field(default_factory=Tunables)
    wave_size: int = 4
    """Pods that are evicted at a time."""
    grace_seconds: int | None = None
    """None: what each pod says itself."""
    timeout: float = 300.0
    """Seconds that a wave may take."""
    apply: bool = False
    """False: only look."""


@dataclass(frozen=True, slots=True)
class Step:
    """One move, and what became of it."""

    namespace: str
    pod: str
    gpus: int
    donor: str
    target: str
    wave: int
    """From 1; 0 of a pod that is kept."""
    outcome: str
    """Of an eviction, or `kept`."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    schema: str = SCHEMA
    applied: bool
    plan: Consolidation
    wave_size: int
    cordon: tuple[str, ...]
    """The donors, before the first wave."""
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


async def apply(
    access: Access, options: ApplyOptions, progress: Progress | None = None
) -> Application:
    if options.wave_size < 1:
        raise UsageError(f"--wave-size {options.wave_size}: a wave has at least one pod")
    fleet = await read(access, options.source)
    if fleet.server != str(access.server):
        raise UsageError(
            f"{options.source.name} is of {fleet.server}, and this cluster is {access.server}",
            hint="choose the cluster of the audit with --context, or use --live",
        )
    planned = plan(fleet, options.tunables)
    async with connect(access) as api:
        steps, targets, reasons = await _look(api, planned, options.wave_size)
        cordon = tuple(sorted({step.donor for step in steps if step.wave}))
        application = Application(
            applied=options.apply,
            plan=planned,
            wave_size=options.wave_size,
            cordon=cordon,
            steps=steps,
        )
        if not options.apply:
            told = tuple(_told(step, reasons) for step in steps)
            return replace(application, steps=told)
        for donor in cordon:
            await set_cordoned(api, donor, True, apply=True)
        return await _waves(api, application, targets, options, progress)


_Targets = Mapping[tuple[str, str], Target]
"""By namespace and name."""


async def _look(
    api: Api, planned: Consolidation, wave_size: int
) -> tuple[tuple[Step, ...], _Targets, Mapping[tuple[str, str], str]]:
    """The steps as they can be made now, whom to evict, and what budgets say about them."""
    if not planned.moves:
        return (), {}, {}
    nodes = {it.metadata.name: it for it in (await api.list(_NODES, type=Node)).items}
    pods: dict[tuple[str, str, str], Pod] = {}
    for donor in sorted({move.donor for move in planned.moves}):
        where = Selection(None, fields=f"spec.nodeName={donor}")
        for pod in (await api.list(_PODS, where, type=Pod)).items:
            pods[donor, pod.metadata.namespace, pod.metadata.name] = pod
    found = [
        (move, pods.get((move.donor, move.namespace, move.pod)))
        for move in sorted(planned.moves, key=lambda it: it.donor)
    ]
    steps = tuple(_steps(found, nodes, wave_size))
    going = [pod for step, (_, pod) in zip(steps, found, strict=True) if step.wave and pod]
    targets = {(it.namespace, it.name): it for it in choose(going).evict}
    held = await _budgets(api, going)
    reasons = {
        (pod.metadata.namespace, pod.metadata.name): held.get(pod.metadata.uid, "") for pod in going
    }
    return steps, targets, reasons


def _steps(
    found: Sequence[tuple[Move, Pod | None]], nodes: Mapping[str, Node], wave_size: int
) -> Iterator[Step]:
    going = 0
    for move, pod in found:
        reason = obstacle(move, pod, nodes.get(move.target))
        wave = 0 if reason else going // wave_size + 1
        going += not reason
        yield Step(
            move.namespace,
            move.pod,
            move.gpus,
            move.donor,
            move.target,
            wave,
            KEPT if reason else UNASKED,
            reason,
        )


def obstacle(move: Move, pod: Pod | None, target: Node | None) -> str:
    """PURE. Why a move is not made; empty if it is."""
    if pod is None:
        return f"it is not on {move.donor} any more"
    protected = choose([pod]).skip
    if protected:
        return protected[0].reason
    if not any(owner.controller for owner in pod.metadata.owner_references):
        return "nothing would start it again"
    if target is None:
        return f"{move.target} is not there any more"
    if target.spec.unschedulable or not is_ready(target):
        return f"{move.target} takes no new pods now"
    if not matches_node(structs.replace(pod.spec, node_name=""), target):
        return f"its node selector or affinity does not let it onto {move.target}"
    taints = untolerated(pod.spec.tolerations, target.spec.taints, ("NoSchedule", "NoExecute"))
    return f"it does not tolerate {taints[0].key} of {move.target}" if taints else ""


async def _budgets(api: Api, pods: Sequence[Pod]) -> dict[str, str]:
    """By uid, what holds a pod back; nothing if we may not look at budgets."""
    try:
        budgets = (await api.list(_BUDGETS, type=PodDisruptionBudget)).items
    except Forbidden:
        return {}
    return held_back(pods, budgets)


def _told(step: Step, reasons: Mapping[tuple[str, str], str]) -> Step:
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
    steps = {(step.namespace, step.pod): step for step in application.steps}
    stopped = 0
    for wave in range(1, application.waves + 1):
        departures = await evict_targets(
            api,
            [targets[name] for name, step in steps.items() if step.wave == wave],
            grace_seconds=options.grace_seconds,
            timeout=options.timeout,
            progress=progress,
        )
        for it in departures:
            name = it.namespace, it.name
            steps[name] = replace(steps[name], outcome=it.outcome, reason=it.reason)
        if any(it.outcome != GONE for it in departures):
            stopped = wave
            break
    return replace(application, steps=tuple(steps.values()), stopped=stopped)

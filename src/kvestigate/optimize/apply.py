"""`optimize apply`: empty the donors of a plan, pod by pod, and say what was reached.

The scheduler chooses the node of every new pod, and it prefers empty nodes: left to itself, it
would undo the plan. So while a wave is under way, every node on which its pods could start is
cordoned, except for their target. These cordons are removed again, however the command ends. A
donor is cordoned when its first pod goes. If it becomes empty it stays cordoned; otherwise it is
uncordoned, so that what was evicted can come back.

Before each wave the cluster is read again, and what is left of the plan is checked as the plan was
made. If a donor cannot become empty any more, nothing further is evicted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.errors import Expired, KvestigateError, UsageError
from kvestigate.kube import builtins
from kvestigate.kube.views.pods import Pod
from kvestigate.nodeops.cordon import set_cordoned
from kvestigate.nodeops.evict import GONE, UNASKED, EvictionTarget, Progress, evict_targets
from kvestigate.nodeops.fates import controller_of
from kvestigate.operation import GROUP, Context, duration, param
from kvestigate.optimize.collect import FleetSource, read, require_readable
from kvestigate.optimize.consolidation import Consolidation, Move, Tunables, plan
from kvestigate.optimize.steps import KEPT, MOVED, Step, obstacles, pods_of, waves
from kvestigate.optimize.trial import Trial, gpu_pods_on
from kvestigate.snapshot import scheduling
from kvestigate.snapshot.scheduling import Situation

SCHEMA = "kvestigate.optimize.apply/v2"

_PODS = builtins.resource("pods")


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
        float,
        duration("How long to wait in a wave for pods to terminate, for budgets and new pods."),
    ] = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    schema: str = SCHEMA
    applied: bool
    plan: Consolidation
    wave_size: int
    donors: tuple[str, ...]
    """Nodes that become empty, in this order."""
    steps: tuple[Step, ...]
    stopped: str = ""
    """Why the command ended before its goal; empty if it reached it."""
    emptied: tuple[str, ...] = ()
    """Donors that are empty now; they stay cordoned."""
    empty_now: int | None = None
    """Empty nodes at the end; None in a preview."""

    @property
    def nothing_to_do(self) -> bool:
        return not self.donors

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
    async with connect(access) as api:
        situation = await scheduling.read(api)
        require_readable(situation)
        planned = plan(fleet, options.tunables, situation if options.source.live else None)
        application = _prepared(planned, situation, options)
        if not context.apply or application.nothing_to_do:
            return replace(application, applied=context.apply)
        return await _Run(api, application, options, context.progress).run()


def _prepared(planned: Consolidation, situation: Situation, options: ApplyOptions) -> Application:
    """The steps that are possible now, in their waves."""
    data = options.tunables.delete_emptydir_data
    reasons = obstacles(planned.moves, situation, data=data)
    possible = [move for move in planned.moves if move not in reasons]
    made = [
        _step(move, number, UNASKED)
        for number, wave in enumerate(waves(possible, situation, options.wave_size), 1)
        for move in wave
    ]
    made += [_step(move, 0, KEPT, reason) for move, reason in reasons.items()]
    return Application(
        applied=False,
        plan=planned,
        wave_size=options.wave_size,
        donors=tuple(dict.fromkeys(move.donor for move in possible)),
        steps=tuple(made),
    )


def _step(move: Move, wave: int, outcome: str, reason: str = "") -> Step:
    return Step(move.namespace, move.pod, move.gpus, move.donor, move.target, wave, outcome, reason)


class _Stop(Exception):
    """The goal cannot be reached any more; the message says why."""


class _Run:
    """One application while it is carried out."""

    def __init__(
        self,
        api: Api,
        application: Application,
        options: ApplyOptions,
        progress: Progress | None,
    ) -> None:
        self._api = api
        self._application = application
        self._options = options
        self._progress = progress
        self._steps = {
            Move(step.namespace, step.pod, step.gpus, step.donor, step.target): step
            for step in application.steps
        }
        self._cordons: set[str] = set()
        """Nodes that this command has cordoned."""
        self._begun: list[str] = []
        """Donors of which a pod was to be evicted."""

    async def run(self) -> Application:
        stopped = ""
        left = [move for move, step in self._steps.items() if step.wave]
        try:
            while left:
                left = await self._next_wave(left)
        except _Stop as stop:
            stopped = str(stop)
        except KvestigateError as error:
            stopped = error.message
        finally:
            emptied, empty_now = await self._released()
        return replace(
            self._application,
            applied=True,
            steps=tuple(self._steps.values()),
            stopped=stopped,
            emptied=emptied,
            empty_now=empty_now,
        )

    async def _next_wave(self, left: list[Move]) -> list[Move]:
        """Make the first moves of what is left; returns the others."""
        situation = await scheduling.read(self._api)
        require_readable(situation)
        data = self._options.tunables.delete_emptydir_data
        # The cordons of this command are not what keeps pods away.
        situation = situation.without_cordons(self._cordons)
        donor = left[0].donor
        own = [move for move in left if move.donor == donor]
        reasons = obstacles(own, situation, data=data, begun=bool(self._begun))
        if reasons:
            move, reason = next(iter(reasons.items()))
            raise _Stop(f"{move.namespace}/{move.pod} cannot move to {move.target}: {reason}")
        wave = waves(own, situation, self._options.wave_size)[0]
        await self._make(wave, situation)
        return [move for move in left if move not in wave]

    async def _make(self, wave: Sequence[Move], situation: Situation) -> None:
        trial = Trial(situation)
        pods = pods_of(wave, trial)
        target, donor = wave[0].target, wave[0].donor
        if donor not in self._begun:
            self._begun.append(donor)
        await self._cordon({donor, *trial.others_that_fit(pods, target)} - {target})
        known = {pod.metadata.uid for pod in situation.pods}
        departures = await evict_targets(
            self._api,
            [EvictionTarget.of(pod) for pod in pods],
            grace_seconds=self._options.grace_seconds,
            timeout=self._options.timeout,
            progress=self._progress,
        )
        for move, departure in zip(wave, departures, strict=True):
            self._note(move, departure.outcome, departure.reason)
        staying = [each for each in departures if each.outcome != GONE]
        if staying:
            first = staying[0]
            words = f"{first.namespace}/{first.name} was not evicted: {first.outcome}"
            raise _Stop(f"{words}, {first.reason}" if first.reason else words)
        landed = await self._settled(pods, known, target)
        for move in wave:
            self._note(move, MOVED)
        for name, node in landed.items():
            if node != target:
                raise _Stop(f"{name} started on {node}, not on {target}")

    async def _settled(self, pods: Sequence[Pod], known: set[str], target: str) -> dict[str, str]:
        """The new pods with their nodes, as soon as there are as many as were evicted."""
        wanted = Counter(owner.uid for pod in pods if (owner := controller_of(pod)))
        landed: dict[str, str] = {}
        try:
            async with asyncio.timeout(self._options.timeout):
                while not _enough(landed_pods := await self._new_pods(wanted, known), wanted):
                    await self._check_pending(landed_pods, target)
                    await self._until_pods_change()
                landed = {
                    f"{pod.metadata.namespace}/{pod.metadata.name}": pod.spec.node_name
                    for pod in landed_pods
                    if pod.spec.node_name
                }
        except TimeoutError:
            raise _Stop("new pods were not placed in time") from None
        return landed

    async def _new_pods(self, owners: Counter[str], known: set[str]) -> list[Pod]:
        page = await self._api.list(_PODS, type=Pod)
        self._version = page.metadata.resource_version
        return [
            pod
            for pod in page.items
            if pod.metadata.uid not in known
            and (owner := controller_of(pod)) is not None
            and owner.uid in owners
        ]

    async def _check_pending(self, pods: Sequence[Pod], target: str) -> None:
        """Raises _Stop if a new pod does not fit on the target any more."""
        refused = [pod for pod in pods if not pod.spec.node_name and _is_refused(pod)]
        if not refused:
            return
        situation = await scheduling.read(self._api)
        trial = Trial(situation.without_cordons(self._cordons))
        for pod in refused:
            reason = trial.rejections(pod, [target])[target]
            if reason:
                name = f"{pod.metadata.namespace}/{pod.metadata.name}"
                raise _Stop(f"{name} waits for a node: {reason}")

    async def _until_pods_change(self) -> None:
        watch = self._api.watch(_PODS, resource_version=self._version, type=Pod)
        try:
            async with watch as events:
                async for _ in events:
                    return
        except Expired:
            return

    async def _cordon(self, wanted: set[str]) -> None:
        """Cordon these nodes, and open the others that this command has cordoned before."""
        donors = set(self._application.donors)
        for node in sorted(self._cordons - wanted - donors):
            await set_cordoned(self._api, node, False, apply=True)
            self._cordons.discard(node)
        for node in sorted(wanted - self._cordons):
            done = await set_cordoned(self._api, node, True, apply=True)
            if not done.before:
                self._cordons.add(node)

    async def _released(self) -> tuple[tuple[str, ...], int | None]:
        """Open all nodes but emptied donors; those, and the number of empty nodes."""
        emptied: tuple[str, ...] = ()
        empty_now: int | None = None
        try:
            situation = await scheduling.read(self._api)
            names = [node.node for node in self._application.plan.nodes]
            empty = {name for name in names if not gpu_pods_on(name, situation)}
            emptied = tuple(name for name in self._begun if name in empty)
            empty_now = len(empty)
        finally:
            for node in sorted(self._cordons - {*emptied}):
                await set_cordoned(self._api, node, False, apply=True)
        return emptied, empty_now

    def _note(self, move: Move, outcome: str, reason: str = "") -> None:
        self._steps[move] = replace(self._steps[move], outcome=outcome, reason=reason)


def _enough(pods: Sequence[Pod], wanted: Counter[str]) -> bool:
    placed = Counter(
        owner.uid for pod in pods if pod.spec.node_name and (owner := controller_of(pod))
    )
    return all(placed[uid] >= count for uid, count in wanted.items())


def _is_refused(pod: Pod) -> bool:
    return any(
        condition.type == "PodScheduled" and condition.status == "False"
        for condition in pod.status.conditions
    )

"""`evict`, `node drain` and `node clear`: evict pods through the eviction API, in waves.

First every selected pod gets its fate (`fates`). If one of them is refused, nothing at all is done.
Then a wave requests the eviction of every remaining pod and waits until the evicted pods are gone.
Pods that a PodDisruptionBudget protects are tried again in the next wave: at once if other pods
went, otherwise when a budget changes, until the timeout. Then they are reported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.client.connect import connect
from kvestigate.client.named import get_named, require_namespace
from kvestigate.errors import (
    Conflict,
    Expired,
    KvestigateError,
    NotFound,
    TooManyRequests,
    UsageError,
)
from kvestigate.kube import builtins
from kvestigate.kube.views.meta import PartialObject
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.policy import PodDisruptionBudget
from kvestigate.nodeops.cordon import set_cordoned
from kvestigate.nodeops.fates import Allowed, Fate, Verdict, fates
from kvestigate.operation import NAMESPACE, Context, duration, param
from kvestigate.snapshot import scheduling

_PODS = builtins.resource("pods")
_NODES = builtins.resource("nodes")
_BUDGETS = builtins.resource("poddisruptionbudgets")
_TOGETHER = 16
"""Evictions in flight at the same time."""
_PAUSE = 5.0
"""Seconds after which blocked pods are tried again, even without a change of a budget."""

GONE, BLOCKED, FAILED = "gone", "blocked", "failed"
LEAVING, UNASKED = "leaving", "not asked"

Progress = Callable[[str, int], None]
"""Called with `pods` and the number of pods that are still there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOptions:
    """Which pods of a node leave, and how."""

    node: Annotated[str, param("The node.", argument=True, metavar="NODE")]
    force: Annotated[bool, param("Also evict pods that no controller recreates.")] = False
    delete_emptydir_data: Annotated[
        bool, param("Also evict pods whose emptyDir volumes lose their data.")
    ] = False
    include_system: Annotated[bool, param("Also evict pods of system namespaces.")] = False
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
        float, duration("How long to wait for pods to terminate and for budgets.")
    ] = 300.0

    @property
    def allowed(self) -> Allowed:
        return Allowed(self.include_system, self.force, self.delete_emptydir_data)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictOptions(DrainOptions):
    """At least one of the first three is needed; together they narrow the selection."""

    node: Annotated[str, param("Pods on this node.", metavar="NODE")] = ""
    namespace: Annotated[str, NAMESPACE] = ""
    """Empty: every namespace."""
    selector: Annotated[
        str, param("Only pods with these labels.", "-l", "--selector", metavar="SELECTOR")
    ] = ""


@dataclass(frozen=True, slots=True)
class EvictionTarget:
    """A pod to be evicted."""

    namespace: str
    name: str
    uid: str
    node: str

    @classmethod
    def of(cls, pod: Pod) -> EvictionTarget:
        meta = pod.metadata
        return cls(meta.namespace, meta.name, meta.uid, pod.spec.node_name)


@dataclass(frozen=True, slots=True)
class Departure:
    namespace: str
    name: str
    outcome: str
    """`gone`, `blocked` by a budget, `failed`, `leaving` (terminating), or `not asked` (no
    eviction was requested, as in a preview)."""
    reason: str = ""
    """The server's message; in a preview, what will happen to the pod."""
    blocked: str = ""
    """In a preview, the budget that blocks the eviction now."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A pod that stays."""

    namespace: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A pod because of which nothing is evicted."""

    namespace: str
    name: str
    reason: str
    flag: str
    """The flag that allows its eviction."""


@dataclass(frozen=True, slots=True)
class Evictions:
    node: str
    cordon: bool
    """Whether the node is cordoned first."""
    applied: bool
    """False for a preview, and if pods are refused: then nothing was changed."""
    pods: tuple[Departure, ...]
    skipped: tuple[Skipped, ...]
    refused: tuple[Refused, ...] = ()

    @property
    def nothing_to_do(self) -> bool:
        return not self.pods and not self.cordon and not self.refused

    @property
    def flags(self) -> list[str]:
        """What allows the evictions of all refused pods."""
        return sorted({pod.flag for pod in self.refused}, reverse=True)

    def count(self, outcome: str) -> int:
        return sum(pod.outcome == outcome for pod in self.pods)


async def evict(context: Context, options: EvictOptions) -> Evictions:
    """Evict the selected pods. Raises UsageError if nothing limits the selection."""
    if not (options.node or options.namespace or options.selector):
        raise UsageError("no pods are selected", hint="give --node, --namespace or --selector")
    return await _carried_out(context, options, cordon=False)


async def clear(context: Context, options: DrainOptions) -> Evictions:
    return await _carried_out(context, _scope(options), cordon=False)


async def drain(context: Context, options: DrainOptions) -> Evictions:
    return await _carried_out(context, _scope(options), cordon=True)


def _scope(options: DrainOptions) -> EvictOptions:
    """Without a node, the pods of the whole cluster would be selected."""
    if not options.node:
        raise UsageError("no node is given", hint="add the name of a node")
    return EvictOptions(
        node=options.node,
        force=options.force,
        delete_emptydir_data=options.delete_emptydir_data,
        include_system=options.include_system,
        grace_seconds=options.grace_seconds,
        timeout=options.timeout,
    )


async def evict_targets(
    api: Api,
    targets: Sequence[EvictionTarget],
    *,
    grace_seconds: int | None = None,
    timeout: float = 300.0,
    progress: Progress | None = None,
) -> tuple[Departure, ...]:
    """Evict exactly these pods, in waves as `evict` does."""
    nodes = {target.node for target in targets}
    namespaces = {target.namespace for target in targets}
    scope = EvictOptions(
        node=nodes.pop() if len(nodes) == 1 else "",
        namespace=namespaces.pop() if len(namespaces) == 1 else "",
        grace_seconds=grace_seconds,
        timeout=timeout,
    )
    departures = {
        target.uid: Departure(target.namespace, target.name, UNASKED) for target in targets
    }
    await _Waves(api, scope, departures, progress).run(targets)
    return tuple(departures.values())


async def _carried_out(context: Context, options: EvictOptions, *, cordon: bool) -> Evictions:
    async with connect(context.access) as api:
        if options.node:
            await get_named(api, _NODES, options.node, PartialObject)
        if options.namespace:
            await require_namespace(api, options.namespace)
        decided = await _decided(api, options, cordon=cordon)
        if context.apply and cordon and not _refusals(decided):
            decided = await _cordoned(api, options)
        refused = _refusals(decided)
        apply = context.apply and not refused
        departures = {
            fate.pod.metadata.uid: _departure(fate)
            for fate in decided
            if fate.verdict is Verdict.EVICT
        }
        if apply:
            going = [fate.pod for fate in decided if fate.verdict is Verdict.EVICT]
            waves = _Waves(api, options, departures, context.progress)
            await waves.run([EvictionTarget.of(pod) for pod in going])
    skipped = tuple(
        Skipped(fate.pod.metadata.namespace, fate.pod.metadata.name, fate.reason)
        for fate in decided
        if fate.verdict is Verdict.STAY
    )
    return Evictions(options.node, cordon, apply, tuple(departures.values()), skipped, refused)


async def _decided(api: Api, options: EvictOptions, *, cordon: bool) -> tuple[Fate, ...]:
    pods = (await api.list(_PODS, _selection(options), type=Pod)).items
    closed = options.node if cordon else ""
    return fates(pods, await scheduling.read(api), options.allowed, closed)


async def _cordoned(api: Api, options: EvictOptions) -> tuple[Fate, ...]:
    """Cordon the node, then decide about the pods that came before that.

    If one of them is refused, nothing is to be done: the node is opened again.
    """
    done = await set_cordoned(api, options.node, True, apply=True)
    decided = await _decided(api, options, cordon=True)
    if _refusals(decided) and not done.before:
        await set_cordoned(api, options.node, False, apply=True)
    return decided


def _refusals(decided: Sequence[Fate]) -> tuple[Refused, ...]:
    return tuple(_refused(fate) for fate in decided if fate.verdict is Verdict.REFUSE)


def _departure(fate: Fate) -> Departure:
    meta = fate.pod.metadata
    return Departure(meta.namespace, meta.name, UNASKED, fate.reason, fate.blocked)


def _refused(fate: Fate) -> Refused:
    meta = fate.pod.metadata
    return Refused(meta.namespace, meta.name, fate.reason, fate.flag)


def _selection(options: EvictOptions) -> Selection:
    fields = f"spec.nodeName={options.node}" if options.node else ""
    return Selection(options.namespace or None, labels=options.selector, fields=fields)


class _Waves:
    """Evicts pods and writes each outcome down at once, so that a timeout loses nothing."""

    def __init__(
        self,
        api: Api,
        options: EvictOptions,
        departures: dict[str, Departure],
        progress: Progress | None,
    ) -> None:
        self._api = api
        self._options = options
        self._departures = departures
        self._progress = progress
        self._room = asyncio.Semaphore(_TOGETHER)

    async def run(self, targets: Iterable[EvictionTarget]) -> None:
        left = list(targets)
        try:
            async with asyncio.timeout(self._options.timeout):
                while left:
                    await asyncio.gather(*(self._ask(target) for target in left))
                    leaving = {
                        target.uid
                        for target in left
                        if self._departures[target.uid].outcome == LEAVING
                    }
                    if leaving:
                        await self._until_gone(leaving)
                    gone = any(self._departures[target.uid].outcome == GONE for target in left)
                    left = [
                        target for target in left if self._departures[target.uid].outcome == BLOCKED
                    ]
                    if left and not gone:
                        await self._until_budgets_change()
        except TimeoutError:
            return  # the outcomes say which pods are still leaving or blocked

    async def _ask(self, target: EvictionTarget) -> None:
        async with self._room:
            try:
                await self._api.evict(
                    target.name,
                    namespace=target.namespace,
                    grace_seconds=self._options.grace_seconds,
                    uid=target.uid,
                )
            except TooManyRequests as error:
                self._note(target.uid, BLOCKED, _cause(error))
            except (NotFound, Conflict):  # a conflict: another pod has the name by now
                self._note(target.uid, GONE)
            except KvestigateError as error:
                self._note(target.uid, FAILED, error.message)
            else:
                self._note(target.uid, LEAVING)

    async def _until_gone(self, leaving: set[str]) -> None:
        while leaving:
            page = await self._api.list(_PODS, _selection(self._options), type=Pod)
            self._went(leaving, leaving - {pod.metadata.uid for pod in page.items})
            if not leaving:
                return
            watch = self._api.watch(
                _PODS,
                _selection(self._options),
                resource_version=page.metadata.resource_version,
                type=Pod,
            )
            try:
                async with watch as events:
                    async for event in events:
                        if event.type == "DELETED":
                            self._went(leaving, leaving & {event.object.metadata.uid})
                        if not leaving:
                            return
            except Expired:
                continue  # the next list shows what the watch missed

    async def _until_budgets_change(self) -> None:
        """Returns when a budget allows an eviction again, or after a pause."""
        where = Selection(self._options.namespace or None)
        try:
            async with asyncio.timeout(_PAUSE):
                page = await self._api.list(_BUDGETS, where, type=PodDisruptionBudget)
                version = page.metadata.resource_version
                watch = self._api.watch(
                    _BUDGETS, where, resource_version=version, type=PodDisruptionBudget
                )
                async with watch as events:
                    async for event in events:
                        if event.type == "DELETED" or event.object.status.disruptions_allowed:
                            return
        except TimeoutError:
            return
        except KvestigateError:
            await asyncio.sleep(_PAUSE)  # budgets are forbidden

    def _went(self, leaving: set[str], uids: set[str]) -> None:
        for uid in uids:
            self._note(uid, GONE)
        leaving -= uids
        if self._progress is not None:
            self._progress("pods", len(leaving))

    def _note(self, uid: str, outcome: str, reason: str = "") -> None:
        pod = self._departures[uid]
        self._departures[uid] = Departure(pod.namespace, pod.name, outcome, reason)


def _cause(error: TooManyRequests) -> str:
    """The server's message, and which budget says so."""
    causes = [cause.get("message", "") for cause in error.causes]
    return " ".join(filter(None, (error.message, *causes)))

"""`pods`: the pods of all namespaces, or of one.

People type it all day, so its start is measured (`make bench`): what it imports, it uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from kvestigate.client.access import Access
from kvestigate.client.api import PODS as RESOURCE
from kvestigate.client.call import Selection
from kvestigate.client.connect import connect
from kvestigate.inspection.pod_status import ready_of, restarted_at, restarts_of, status_of
from kvestigate.kube.views.pods import CondensedPod as Pod
from kvestigate.operation import (
    NAMESPACE,
    Effect,
    Operation,
    Touched,
    check_namespace,
    param,
    with_progress,
)
from kvestigate.render.blocks import Block, Cell, Field, Tone, table
from kvestigate.render.human import age

if TYPE_CHECKING:
    from kvestigate.snapshot.source import Progress

_GOOD = ("Running", "Completed", "Succeeded")
_ON_ITS_WAY = ("Pending", "ContainerCreating", "PodInitializing", "Terminating")


@dataclass(frozen=True, slots=True)
class PodsOptions:
    """Which pods."""

    namespace: Annotated[str, NAMESPACE] = ""
    """Empty: all namespaces."""
    selector: Annotated[
        str,
        param("Only pods with these labels: app=web.", "-l", "--selector", metavar="LABELS"),
    ] = ""
    """`app=web,tier!=db`"""
    all_namespaces: Annotated[
        bool,
        param(
            "List the pods of all namespaces. This is the default without -n.",
            "-A",
            "--all-namespaces",
            operator_only=True,
        ),
    ] = False

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The one namespace that is listed; empty for all."""
        return (self.namespace,) if self.namespace and not self.all_namespaces else ()

    def __post_init__(self) -> None:
        check_namespace(self.namespace)


@dataclass(frozen=True, slots=True)
class PodRow:
    """A pod in the list."""

    namespace: str
    name: str
    ready: int
    containers: int
    status: str
    restarts: int
    restarted_seconds: float | None
    """Seconds since the last restart; None if there was none or its time is unknown."""
    age_seconds: float
    node: str
    ip: str


@dataclass(frozen=True, slots=True)
class Pods:
    """The list, and what was asked for."""

    namespace: str
    selector: str
    pods: tuple[PodRow, ...]


async def list_pods(access: Access, options: PodsOptions, progress: Progress | None = None) -> Pods:
    if options.selector:
        from kvestigate.kube.selectors import parse_labels

        parse_labels(options.selector)  # this error points at the character, the server's does not
    namespace = "".join(options.namespaces)
    selection = Selection(namespace or None, labels=options.selector)
    now = datetime.now(UTC)
    rows: list[PodRow] = []
    async with connect(access) as api, aclosing(api.pages(RESOURCE, selection, type=Pod)) as pages:
        async for page in pages:
            rows += (_pod(item, now) for item in page.items)
            if progress is not None:
                left = page.metadata.remaining_item_count or 0
                progress(RESOURCE.plural, len(rows), len(rows) + left)
        if namespace and not rows:
            from kvestigate.client.named import require_namespace

            await require_namespace(api, namespace)
    return Pods(namespace, options.selector, tuple(rows))


def _pod(pod: Pod, now: datetime) -> PodRow:
    ready, containers = ready_of(pod)
    last = restarted_at(pod)
    return PodRow(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        ready=ready,
        containers=containers,
        status=status_of(pod),
        restarts=restarts_of(pod),
        restarted_seconds=None if last is None else _since(last, now),
        age_seconds=_since(pod.metadata.creation_timestamp, now),
        node=pod.spec.node_name,
        ip=pod.status.pod_ip,
    )


def _since(then: datetime | None, now: datetime) -> float:
    return (now - then).total_seconds() if then else 0.0


def pods_blocks(result: Pods) -> Sequence[Block]:
    where = f"in namespace {result.namespace}" if result.namespace else "in any namespace"
    which = f"no pod matches {result.selector}" if result.selector else "no pods"
    namespace: Field[PodRow] = Field("namespace", lambda row: row.namespace)
    return [
        table(
            result.pods,
            *(() if result.namespace else (namespace,)),
            Field("name", lambda row: row.name),
            Field("ready", lambda row: f"{row.ready}/{row.containers}", number=True),
            Field("status", lambda row: Cell(row.status, _tone(row.status))),
            Field("restarts", _restarts, number=True),
            Field("age", lambda row: age(row.age_seconds), number=True),
            Field("node", lambda row: row.node or "-"),
            Field("ip", lambda row: row.ip or "-", wide=True),
            empty=f"{which} {where}",
        )
    ]


def _restarts(pod: PodRow) -> str:
    if not pod.restarts or pod.restarted_seconds is None:
        return str(pod.restarts)
    return f"{pod.restarts} ({age(pod.restarted_seconds)} ago)"


def _tone(status: str) -> Tone:
    if status in _GOOD:
        return Tone.GOOD
    return Tone.WARN if status in _ON_ITS_WAY or status.startswith("Init:") else Tone.BAD


PODS: Operation[PodsOptions, Pods] = Operation(
    name="pods",
    summary="List the pods of all namespaces, or of one with -n.",
    examples=(
        "kvestigate pods",
        "kvestigate pods -n shop -l app=web",
        "kvestigate pods -o wide",
    ),
    input=PodsOptions,
    output=Pods,
    effect=Effect.READ,
    touches=lambda options: Touched(namespaces=options.namespaces),
    for_agents=True,
    handler=with_progress(list_pods),
    counts=True,
    render=pods_blocks,
)

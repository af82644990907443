"""`namespaces` and `pods`: lists of namespaces and pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from kvestigate.client.access import Access
from kvestigate.client.call import Selection
from kvestigate.client.connect import connect
from kvestigate.client.named import require_namespace
from kvestigate.errors import Forbidden
from kvestigate.inspection.pod_status import ready_of, restarted_at, restarts_of, status_of
from kvestigate.kube.selectors import parse_labels
from kvestigate.operation import NAMESPACE, check_namespace, param
from kvestigate.render.blocks import Block, Cell, Field, Tone, table, text
from kvestigate.render.human import age
from kvestigate.snapshot import listings
from kvestigate.snapshot.collect import take
from kvestigate.snapshot.model import Gap
from kvestigate.snapshot.pods import Pod
from kvestigate.snapshot.source import Progress

_GOOD = ("Running", "Completed", "Succeeded")
_ON_ITS_WAY = ("Pending", "ContainerCreating", "PodInitializing", "Terminating")


@dataclass(frozen=True, slots=True)
class NamespacesOptions:
    """`namespaces` has no options."""


@dataclass(frozen=True, slots=True)
class NamespaceRow:
    name: str
    phase: str
    pods: int
    running: int
    age_seconds: float


@dataclass(frozen=True, slots=True)
class Namespaces:
    namespaces: tuple[NamespaceRow, ...]
    gaps: tuple[Gap, ...]


@dataclass(frozen=True, slots=True)
class PodsOptions:
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
    namespace: str
    selector: str
    pods: tuple[PodRow, ...]


async def list_namespaces(
    access: Access, options: NamespacesOptions, progress: Progress | None = None
) -> Namespaces:
    wanted = (listings.NAMESPACES, listings.PODS)
    async with connect(access) as api:
        snapshot = await take(api, wanted, progress)
    if not snapshot.knows(listings.NAMESPACES):
        raise Forbidden(snapshot.gaps[listings.NAMESPACES].message)
    pods = snapshot.of(listings.PODS)
    counts = Counter(pod.metadata.namespace for pod in pods)
    running = Counter(pod.metadata.namespace for pod in pods if pod.status.phase == "Running")
    rows = tuple(
        NamespaceRow(
            name=namespace.metadata.name,
            phase=namespace.status.phase,
            pods=counts[namespace.metadata.name],
            running=running[namespace.metadata.name],
            age_seconds=_since(namespace.metadata.creation_timestamp, snapshot.captured_at),
        )
        for namespace in snapshot.of(listings.NAMESPACES)
    )
    return Namespaces(rows, snapshot.missing(wanted))


async def list_pods(access: Access, options: PodsOptions, progress: Progress | None = None) -> Pods:
    parse_labels(options.selector)  # this error points at the character, the server's does not
    namespace = "".join(options.namespaces)
    selection = Selection(namespace or None, labels=options.selector)
    resource, now = listings.PODS.resource, datetime.now(UTC)
    rows: list[PodRow] = []
    async with connect(access) as api, aclosing(api.pages(resource, selection, type=Pod)) as pages:
        async for page in pages:
            rows += (_pod(item, now) for item in page.items)
            if progress is not None:
                left = page.metadata.remaining_item_count or 0
                progress(resource.plural, len(rows), len(rows) + left)
        if namespace and not rows:
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


def namespaces_blocks(result: Namespaces) -> Sequence[Block]:
    known = not any(gap.resource == "pods" for gap in result.gaps)
    notes = [text(f"{gap.resource}: unknown ({gap.message})", Tone.WARN) for gap in result.gaps]
    return [
        table(
            result.namespaces,
            Field("name", lambda row: row.name),
            Field(
                "status",
                lambda row: Cell(row.phase, Tone.PLAIN if row.phase == "Active" else Tone.WARN),
            ),
            Field("pods", lambda row: str(row.pods) if known else "unknown", number=True),
            Field("running", lambda row: str(row.running) if known else "unknown", number=True),
            Field("age", lambda row: age(row.age_seconds), number=True),
            empty="no namespaces",
        ),
        *notes,
    ]


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

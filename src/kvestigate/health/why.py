"""`why`: what is wrong with one object, and with everything that it depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.client.discovery import Discovery
from kvestigate.client.named import get_named, kind_and_name
from kvestigate.health.audit import NEEDS, with_log_lines
from kvestigate.health.cluster import Cluster
from kvestigate.health.dependencies import dependencies
from kvestigate.health.model import Fault, Subject
from kvestigate.health.registry import chosen, faults
from kvestigate.health.state import state_of
from kvestigate.kube.feasibility.filters import verdicts
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.views.meta import PartialObject
from kvestigate.operation import param
from kvestigate.render.blocks import Block, Cell, Field, Tone, next_command, table, text
from kvestigate.render.human import counted
from kvestigate.render.severity import Severity
from kvestigate.reports.model import gap_line
from kvestigate.snapshot import scheduling
from kvestigate.snapshot.collect import take
from kvestigate.snapshot.gaps import Cause, Gap
from kvestigate.snapshot.model import Snapshot
from kvestigate.snapshot.scheduling import Situation
from kvestigate.snapshot.source import Progress

_DEEP = 6
"""How far causes are followed; an Ingress is five steps away from the Secret of a pod."""
_ALIKE = 3
"""How many causes of the same kind are told in full."""
_NODES = 20
"""How many nodes are shown."""


@dataclass(frozen=True, slots=True)
class WhyOptions:
    kind: Annotated[
        str,
        param("Any name of a type: pod, deploy, pvc, svc, node; or KIND/NAME.", argument=True),
    ]
    name: Annotated[str, param("The name of the object.", argument=True)] = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """What one rule says about the object."""

    rule: str
    severity: str
    evidence: str
    why: str
    command: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Step:
    """An object on the way from the symptom to its cause."""

    subject: Subject
    state: str
    """What it is supposed to do, and what it does."""
    problems: tuple[Problem, ...]
    because: tuple[Step, ...]
    """The objects that it depends on and that have problems."""
    left_out: int = 0
    """How many more there are."""


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """Whether a node would take the pod that waits."""

    node: str
    fits: bool
    reasons: tuple[str, ...]
    """Why not, in the words of kube-scheduler."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The decision of the scheduler about a pod that waits, made again."""

    pod: Subject
    nodes: tuple[NodeVerdict, ...]
    """By name."""


@dataclass(frozen=True, slots=True)
class Why:
    captured_at: datetime
    """UTC."""
    server: str
    story: Step
    looked_at: int
    """How many objects that it depends on were checked."""
    gaps: tuple[Gap, ...]
    placement: Placement | None = None
    """Of the first pod in the story that is on no node."""

    @property
    def healthy(self) -> bool:
        return not self.story.problems and not self.story.because


async def collect(access: Access, options: WhyOptions, progress: Progress | None = None) -> Why:
    kind, name = kind_and_name(options.kind, options.name)
    async with connect(access) as api:
        resource = await Discovery(api).resolve(kind)
        found: PartialObject = await get_named(api, resource, name, PartialObject)
        namespace = found.metadata.namespace
        if resource.kind == "Namespace":
            namespace = found.metadata.name
        snapshot = await take(api, NEEDS, progress, namespace=namespace)
        snapshot = await with_log_lines(api, snapshot)
        subject = Subject(resource.kind, found.metadata.name, found.metadata.namespace)
        why = explain(snapshot, subject, str(access.server))
        waiting = _waiting(Cluster(snapshot), why.story)
        if waiting is not None:
            situation = await scheduling.read(api)
            why = replace(why, placement=placement_of(situation, waiting))
    return why


def _waiting(cluster: Cluster, step: Step) -> Subject | None:
    """The first pod of the story that is on no node."""
    if step.subject.kind == "Pod":
        pod = cluster.object(step.subject)
        if pod is not None and not pod.spec.node_name and not pod.finished:
            return step.subject
    causes = (_waiting(cluster, cause) for cause in step.because)
    return next((subject for subject in causes if subject is not None), None)


def placement_of(situation: Situation, subject: Subject) -> Placement | None:
    """Pure: what the filters of the scheduler say of every node; None if that is unknown."""
    if {scheduling.NODES, scheduling.PODS} & situation.unread.keys():
        return None
    key = (subject.namespace, subject.name)
    for pod in situation.pods:
        if (pod.metadata.namespace, pod.metadata.name) == key:
            if pod.spec.resource_claims and scheduling.DEVICES & situation.unread.keys():
                return None
            rejections = verdicts(PodFacts(pod), situation.state())
            return Placement(
                subject,
                tuple(
                    NodeVerdict(node, rejection is None, rejection.reasons if rejection else ())
                    for node, rejection in sorted(rejections.items())
                ),
            )
    return None


def explain(snapshot: Snapshot, subject: Subject, server: str) -> Why:
    """Pure: the story of the object, from what every rule says."""
    cluster = Cluster(snapshot)
    by_subject: dict[Subject, list[Fault]] = {}
    for fault in faults(cluster, chosen()):
        if fault.severity is Severity.INFO:
            continue  # advice explains nothing
        by_subject.setdefault(fault.subject.whole, []).append(fault)
    seen: set[Subject] = set()
    story = _story(cluster, subject, by_subject, seen, _DEEP)
    return Why(
        captured_at=snapshot.captured_at,
        server=server,
        story=story,
        looked_at=len(seen) - 1,
        gaps=tuple(gap for gap in snapshot.missing(NEEDS) if gap.cause is not Cause.ABSENT),
    )


def _story(
    cluster: Cluster,
    subject: Subject,
    known: Mapping[Subject, Sequence[Fault]],
    seen: set[Subject],
    depth: int,
) -> Step:
    seen.add(subject)
    own = known.get(subject, ())
    needed = [_through(cluster, cause.whole, subject) for fault in own for cause in fault.causes]
    needed += _within(subject, known) if subject.kind == "Namespace" else []
    needed += dependencies(cluster, subject)
    because = [
        _story(cluster, cause, known, seen, depth - 1)
        for cause in dict.fromkeys(needed)
        if cause not in seen and depth
    ]
    guilty = [step for step in because if step.problems or step.because]
    return Step(
        subject,
        state_of(cluster, subject),
        tuple(map(_problem, own)),
        tuple(guilty[:_ALIKE]),
        len(guilty[_ALIKE:]),
    )


def _through(cluster: Cluster, cause: Subject, subject: Subject) -> Subject:
    """The workload of a pod that causes something elsewhere: the way leads through it."""
    pod = cluster.object(cause) if cause.kind == "Pod" else None
    if pod is None or cluster.workload(pod) == subject:
        return cause
    return cluster.workload(pod)


def _within(namespace: Subject, known: Mapping[Subject, Sequence[Fault]]) -> list[Subject]:
    return [subject for subject in known if subject.namespace == namespace.name]


def _problem(fault: Fault) -> Problem:
    return Problem(
        fault.rule, fault.severity.value, fault.evidence, fault.why, fault.command, fault.since
    )


def blocks(why: Why) -> Sequence[Block]:
    made: list[Block] = [text(gap_line(gap, brief=True), Tone.WARN) for gap in why.gaps]
    head = f"{why.story.subject}: {why.story.state}"
    if why.healthy:
        looked = f"nor with the {counted(why.looked_at, 'object')} that it depends on"
        checked = looked if why.looked_at else "and nothing was found that it depends on"
        unsure = " in what could be read" if why.gaps else ""
        verdict = f"Nothing wrong was found with it{unsure}, {checked}."
        return [*made, text(head, Tone.STRONG), text(verdict, Tone.GOOD)]
    story = "\n".join([head, *_lines(why.story, "  ")])
    commands = [next_command("try: ", command, Tone.PLAIN) for command in _commands(why.story)]
    decision = _decision(why.placement) if why.placement is not None else []
    return [*made, text(story), *decision, *commands]


def _decision(placement: Placement) -> Sequence[Block]:
    shown = placement.nodes[:_NODES]
    rows = table(
        shown,
        Field("node", lambda row: row.node),
        Field(
            "would take it",
            lambda row: Cell("yes", Tone.GOOD) if row.fits else "; ".join(row.reasons),
        ),
        empty="the cluster has no nodes",
    )
    left = len(placement.nodes) - len(shown)
    more = [text(f"{counted(left, 'more node')}: see them with -o json", Tone.DIM)] if left else []
    return [text(f"Nodes for {placement.pod}", Tone.STRONG), rows, *more]


def _lines(step: Step, indent: str) -> Iterator[str]:
    for problem in step.problems:
        yield f"{indent}{problem.severity}: {problem.evidence}"
    for cause in step.because:
        yield f"{indent}<- {cause.subject}: {cause.state}"
        yield from _lines(cause, f"{indent}   ")
    if step.left_out:
        yield f"{indent}<- {counted(step.left_out, 'more object')}"


def _commands(story: Step) -> Sequence[str]:
    """What to type next: the commands of the causes, the deepest first."""
    return list(dict.fromkeys(reversed(_all_commands(story))))[:_ALIKE]


def _all_commands(step: Step) -> list[str]:
    own = [problem.command for problem in step.problems]
    return [*own, *(command for cause in step.because for command in _all_commands(cause))]

"""Deployments, StatefulSets and DaemonSets: ready against desired, and images. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvestigate.kube.views.meta import Metadata
from kvestigate.render.blocks import Block, Cell, Field, Tone, table
from kvestigate.reports.model import Report
from kvestigate.snapshot import listings
from kvestigate.snapshot.model import Snapshot
from kvestigate.snapshot.pods import PodTemplate


@dataclass(frozen=True, slots=True)
class Workload:
    kind: str
    namespace: str
    name: str
    desired: int
    ready: int
    updated: int
    images: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkloadsReport:
    workloads: tuple[Workload, ...] | None
    """Of the kinds that could be listed; None if there is none and one kind could not."""


def collect(snapshot: Snapshot) -> WorkloadsReport:
    replicated = (
        ("Deployment", snapshot.of(listings.DEPLOYMENTS)),
        ("StatefulSet", snapshot.of(listings.STATEFUL_SETS)),
    )
    workloads = [
        _workload(
            kind,
            workload.metadata,
            workload.spec.template,
            (
                workload.spec.replicas,
                workload.status.ready_replicas,
                workload.status.updated_replicas,
            ),
        )
        for kind, objects in replicated
        for workload in objects
    ]
    for daemon_set in snapshot.of(listings.DAEMON_SETS):
        status = daemon_set.status
        counts = (
            status.desired_number_scheduled,
            status.number_ready,
            status.updated_number_scheduled,
        )
        template = daemon_set.spec.template
        workloads.append(_workload("DaemonSet", daemon_set.metadata, template, counts))
    if not workloads and not snapshot.knows(*REPORT.needs):
        return WorkloadsReport(None)
    workloads.sort(key=lambda workload: (workload.namespace, workload.kind, workload.name))
    return WorkloadsReport(tuple(workloads))


def _workload(
    kind: str, metadata: Metadata, template: PodTemplate, counts: tuple[int, int, int]
) -> Workload:
    desired, ready, updated = counts
    images = tuple(container.image for container in template.spec.containers)
    return Workload(kind, metadata.namespace, metadata.name, desired, ready, updated, images)


def render(report: WorkloadsReport) -> Sequence[Block]:
    return [
        table(
            report.workloads or (),
            Field("namespace", lambda row: row.namespace),
            Field("kind", lambda row: row.kind),
            Field("name", lambda row: row.name),
            Field(
                "ready",
                lambda row: Cell(
                    f"{row.ready}/{row.desired}",
                    Tone.PLAIN if row.ready >= row.desired else Tone.BAD,
                ),
                number=True,
            ),
            Field("updated", lambda row: str(row.updated), number=True, wide=True),
            Field("images", lambda row: ", ".join(row.images)),
            empty="no Deployments, StatefulSets or DaemonSets",
        )
    ]


REPORT = Report(
    name="workloads",
    summary="Deployments, StatefulSets and DaemonSets: ready, desired, images.",
    needs=(listings.DEPLOYMENTS, listings.STATEFUL_SETS, listings.DAEMON_SETS),
    collect=collect,
    render=render,
)

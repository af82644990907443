"""Deployments, StatefulSets and DaemonSets: ready against desired, and images. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvestigate.kube.views.meta import Metadata
from kvestigate.kube.views.pods import PodTemplate
from kvestigate.render.blocks import Block, Cell, Column, Table, Tone
from kvestigate.reports.model import Report
from kvestigate.snapshot import listings
from kvestigate.snapshot.model import Snapshot


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
    workloads: tuple[Workload, ...]


def collect(snapshot: Snapshot) -> WorkloadsReport:
    replicated = (
        ("Deployment", snapshot.of(listings.DEPLOYMENTS)),
        ("StatefulSet", snapshot.of(listings.STATEFUL_SETS)),
    )
    workloads = [
        _workload(
            kind,
            each.metadata,
            each.spec.template,
            (each.spec.replicas, each.status.ready_replicas, each.status.updated_replicas),
        )
        for kind, objects in replicated
        for each in objects
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
    workloads.sort(key=lambda workload: (workload.namespace, workload.kind, workload.name))
    return WorkloadsReport(tuple(workloads))


def _workload(
    kind: str, metadata: Metadata, template: PodTemplate, counts: tuple[int, int, int]
) -> Workload:
    desired, ready, updated = counts
    images = tuple(container.image for container in template.spec.containers)
    return Workload(kind, metadata.namespace, metadata.name, desired, ready, updated, images)


def render(report: WorkloadsReport) -> Sequence[Block]:
    columns = (
        Column("namespace"),
        Column("kind"),
        Column("name"),
        Column("ready", number=True),
        Column("updated", number=True, wide=True),
        Column("images"),
    )
    rows: list[list[str | Cell]] = [
        [
            workload.namespace,
            workload.kind,
            workload.name,
            Cell(
                f"{workload.ready}/{workload.desired}",
                Tone.PLAIN if workload.ready >= workload.desired else Tone.BAD,
            ),
            str(workload.updated),
            ", ".join(workload.images),
        ]
        for workload in report.workloads
    ]
    return [Table(columns, rows, empty="no Deployments, StatefulSets or DaemonSets")]


REPORT = Report(
    name="workloads",
    summary="Deployments, StatefulSets and DaemonSets: ready, desired, images.",
    needs=(listings.DEPLOYMENTS, listings.STATEFUL_SETS, listings.DAEMON_SETS),
    collect=collect,
    render=render,
)

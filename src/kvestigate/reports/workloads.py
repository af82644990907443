"""Deployments, StatefulSets and DaemonSets: ready against desired, and images. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvestigate.kube.views.meta import Metadata
from kvestigate.kube.views.pods import PodTemplate
from kvestigate.render.blocks import Block, Cell, Column, Table, Tone
from kvestigate.reports.model import Report
from kvestigate.snapshot import listings
from kvestigate.snapshot.snapshot import Snapshot


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
    found = [
        *(
            _workload(
                "Deployment",
                it.metadata,
                it.spec.template,
                (it.spec.replicas, it.status.ready_replicas, it.status.updated_replicas),
            )
            for it in snapshot.of(listings.DEPLOYMENTS)
        ),
        *(
            _workload(
                "StatefulSet",
                it.metadata,
                it.spec.template,
                (it.spec.replicas, it.status.ready_replicas, it.status.updated_replicas),
            )
            for it in snapshot.of(listings.STATEFUL_SETS)
        ),
        *(
            _workload(
                "DaemonSet",
                it.metadata,
                it.spec.template,
                (
                    it.status.desired_number_scheduled,
                    it.status.number_ready,
                    it.status.updated_number_scheduled,
                ),
            )
            for it in snapshot.of(listings.DAEMON_SETS)
        ),
    ]
    return WorkloadsReport(tuple(sorted(found, key=lambda it: (it.namespace, it.kind, it.name))))


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
            it.namespace,
            it.kind,
            it.name,
            Cell(f"{it.ready}/{it.desired}", Tone.PLAIN if it.ready >= it.desired else Tone.BAD),
            str(it.updated),
            ", ".join(it.images),
        ]
        for it in report.workloads
    ]
    return [Table(columns, rows, empty="no Deployments, StatefulSets or DaemonSets")]


REPORT = Report(
    name="workloads",
    summary="Deployments, StatefulSets and DaemonSets: ready, desired, images.",
    needs=(listings.DEPLOYMENTS, listings.STATEFUL_SETS, listings.DAEMON_SETS),
    collect=collect,
    render=render,
)

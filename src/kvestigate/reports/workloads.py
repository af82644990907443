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
    workloads = [
        *(
            _workload(
                "Deployment",
                deployment.metadata,
                deployment.spec.template,
                (
                    deployment.spec.replicas,
                    deployment.status.ready_replicas,
                    deployment.status.updated_replicas,
                ),
            )
            for deployment in snapshot.of(listings.DEPLOYMENTS)
        ),
        *(
            _workload(
                "StatefulSet",
                stateful_set.metadata,
                stateful_set.spec.template,
                (
                    stateful_set.spec.replicas,
                    stateful_set.status.ready_replicas,
                    stateful_set.status.updated_replicas,
                ),
            )
            for stateful_set in snapshot.of(listings.STATEFUL_SETS)
        ),
        *(
            _workload(
                "DaemonSet",
                daemon_set.metadata,
                daemon_set.spec.template,
                (
                    daemon_set.status.desired_number_scheduled,
                    daemon_set.status.number_ready,
                    daemon_set.status.updated_number_scheduled,
                ),
            )
            for daemon_set in snapshot.of(listings.DAEMON_SETS)
        ),
    ]
    return WorkloadsReport(
        tuple(
            sorted(
                workloads, key=lambda workload: (workload.namespace, workload.kind, workload.name)
            )
        )
    )


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

"""Starting, stopping and looking at this user's clusters."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from kvestigate.cluster.assembly import kubeconfig, process
from kvestigate.cluster.assembly.directory import (
    ClusterDirectory,
    Record,
    Shape,
    clusters_directory,
    known,
)
from kvestigate.cluster.assembly.population import shape_of
from kvestigate.cluster.assembly.process import Waiting
from kvestigate.cluster.node.hosts.disk import remove_tree
from kvestigate.cluster.scenarios.library import Source, checked
from kvestigate.errors import KvestigateError, UsageError
from kvestigate.files import replace_file


@dataclass(frozen=True, slots=True)
class Started:
    """What `up` shows."""

    name: str
    url: str
    context: str
    """In the user's kubeconfig."""
    nodes: int
    host: str
    seconds: float
    already: bool
    """It was running before."""
    scenario: str = ""


@dataclass(frozen=True, slots=True)
class Stopped:
    name: str
    was_running: bool
    deleted: bool


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    name: str
    running: bool
    url: str
    context: str
    nodes: int
    host: str
    gpus: int
    """Of one node, or the most that one has."""
    scenario: str
    stray_pid: int = 0
    """The process of a cluster whose state directory was removed; 0 for other clusters."""


def up(
    environ: Mapping[str, str],
    name: str,
    shape: Shape | None,
    scenario: Source | None = None,
    waiting: Waiting | None = None,
) -> Started:
    """Start a cluster, as it was when it ran before, in a new shape or from a scenario."""
    began = time.monotonic()
    cluster = ClusterDirectory(clusters_directory(environ), name)
    with cluster.changed_by_us():
        if scenario is not None:
            shape = _from_scenario(cluster, scenario)
        record, already = _started(cluster, shape, waiting)
        context = kubeconfig.merge(kubeconfig.target(environ), cluster.kubeconfig, name)
    seconds = time.monotonic() - began
    made = record.shape
    host = record.host or made.host
    return Started(name, record.url, context, made.nodes, host, seconds, already, made.scenario)


def _started(
    cluster: ClusterDirectory, shape: Shape | None, waiting: Waiting | None
) -> tuple[Record, bool]:
    """The cluster that runs, and whether it did before."""
    if not cluster.is_running():
        wanted = shape or (cluster.read().shape if cluster.exists else Shape())
        return process.start(cluster, wanted, waiting), False
    record = cluster.read()
    if shape is not None and (differences := _differences(record.shape, shape)):
        raise UsageError(
            f'cluster "{cluster.name}" is already running with {differences}',
            hint=f"stop it first: kvestigate down --name {cluster.name}",
        )
    return record, True


def _differences(running: Shape, wanted: Shape) -> str:
    """`nodes 3 instead of 5`; empty if the cluster runs as wanted, at whatever port."""
    before, after = structs.asdict(running), structs.asdict(wanted)
    return ", ".join(
        f"{key.replace('_', '-')} {before[key]} instead of {after[key]}"
        for key in before
        if key != "port" and before[key] != after[key]
    )


def _from_scenario(cluster: ClusterDirectory, scenario: Source) -> Shape:
    """The shape that the scenario gives a new cluster; one that is there must have it already."""
    wanted = shape_of(checked(scenario))
    if not cluster.exists:
        cluster.make()
        replace_file(cluster.scenario, scenario.text.encode())
        return wanted
    shape = cluster.read().shape
    same = shape.scenario and cluster.scenario.read_text(encoding="utf-8") == scenario.text
    if not same:
        raise UsageError(
            f'cluster "{cluster.name}" already exists and was not made from this scenario',
            hint="choose another --name, or delete the cluster: "
            f"kvestigate down --name {cluster.name} --delete",
        )
    return shape


def down(environ: Mapping[str, str], name: str, *, delete: bool) -> Stopped:
    """Stop a cluster; with `delete`, forget it and all that is in it."""
    cluster = ClusterDirectory(clusters_directory(environ), name)
    with cluster.changed_by_us():
        cluster.read()  # raises if the cluster does not exist
        was_running = process.stop(cluster)
        if delete:
            kubeconfig.remove(kubeconfig.target(environ), name)
            remove_tree(cluster.path)
            if cluster.path.exists():
                raise KvestigateError(
                    f'cluster "{name}" could not be deleted completely',
                    hint=f"remove what is left of it by hand: {cluster.path}",
                )
    return Stopped(name, was_running, delete)


def status(environ: Mapping[str, str]) -> list[ClusterStatus]:
    """Every cluster of this user."""
    statuses = []
    for cluster in known(clusters_directory(environ)):
        record, running = cluster.read(), cluster.is_running()
        statuses.append(
            ClusterStatus(
                cluster.name,
                running,
                record.url if running else "",
                kubeconfig.context_name(cluster.name),
                record.shape.nodes,
                record.host or record.shape.host,
                record.shape.gpus,
                record.shape.scenario,
            )
        )
    for stray in process.strays():
        name = Path(stray.directory).name
        statuses.append(ClusterStatus(name, True, "", "", 0, "", 0, "", stray.pid))
    return statuses

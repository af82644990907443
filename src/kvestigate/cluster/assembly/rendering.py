"""What `up`, `down` and `status` show people. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.cluster.assembly.clusters import ClusterStatus, Started, Stopped
from kvestigate.cluster.assembly.demo import NAME, SCENARIO, Demonstration
from kvestigate.cluster.assembly.kubeconfig import context_name
from kvestigate.cluster.scenarios.library import Listed, Source
from kvestigate.render.blocks import Block, Cell, Column, Facts, Table, Tone, text


def started_blocks(started: Started) -> Sequence[Block]:
    how = "is already running" if started.already else f"ready in {started.seconds:.1f} s"
    return [
        text(f'cluster "{started.name}" {how}', Tone.GOOD),
        Facts(
            [
                ("server", started.url),
                ("nodes", f"{started.nodes} ({started.host})"),
                *([("scenario", started.scenario)] if started.scenario else []),
                ("context", started.context),
                ("try", f"kubectl --context {started.context} get nodes"),
            ]
        ),
    ]


def scenarios_blocks(scenarios: Sequence[Listed]) -> Sequence[Block]:
    columns = [Column(name) for name in ("NAME", "NODES", "GPUS", "OBJECTS", "SUMMARY")]
    rows: list[Sequence[str | Cell]] = [
        [row.name, str(row.nodes), str(row.gpus), str(row.objects), row.summary]
        for row in scenarios
    ]
    return [Table(columns, rows)]


def scenario_blocks(scenario: Source) -> Sequence[Block]:
    return [text(scenario.text.rstrip("\n"))]


def stopped_blocks(stopped: Stopped) -> Sequence[Block]:
    done = "stopped" if stopped.was_running else "was not running"
    return [text(f'cluster "{stopped.name}" {done}{"; deleted" if stopped.deleted else ""}')]


def demonstration_blocks(seen: Demonstration) -> Sequence[Block]:
    ready = sum(node.ready for node in seen.nodes)
    runtimes = ", ".join(dict.fromkeys(node.runtime for node in seen.nodes))
    return [
        text(
            f"{ready}/{len(seen.nodes)} nodes ready on {runtimes}, "
            f"{seen.pods} pods of the fleet running"
        ),
        text(
            f"a job asked nvidia-smi on every node in {seen.seconds:.1f} s, "
            f"first line after {seen.first_line_seconds:.2f} s",
            Tone.STRONG,
        ),
        Table(
            [Column("POD"), Column("NODE"), Column("LOG")],
            [[line.pod, line.node, line.text] for line in seen.lines],
        ),
    ]


def farewell_blocks() -> Sequence[Block]:
    context = context_name(NAME)
    return [
        Facts(
            [
                ("in a browser", f"kvestigate --context {context} ui"),
                ("look around", f"kubectl --context {context} get pods -A -o wide"),
                (
                    "on every host",
                    f"kvestigate --context {context} fanout exec --target nodes -- nvidia-smi -L",
                ),
                ("the whole audit", f"kvestigate --context {context} audit"),
                ("the scenario", f"kvestigate scenario show {SCENARIO}"),
                ("clean up", f"kvestigate down --name {NAME} --delete"),
            ]
        ),
    ]


def status_blocks(clusters: Sequence[ClusterStatus]) -> Sequence[Block]:
    if not clusters:
        return [text("no clusters on this machine; start one with: kvestigate up")]
    columns = [
        Column(name)
        for name in (
            "NAME", "STATUS", "NODES", "HOST", "GPUS PER NODE", "SCENARIO", "CONTEXT", "SERVER",
        )
    ]  # fmt: skip
    lost = [str(cluster.stray_pid) for cluster in clusters if cluster.stray_pid]
    table = Table(columns, [_row(cluster) for cluster in clusters])
    if not lost:
        return [table]
    why = "The state directory of a stray was removed. It ends by itself within seconds, or with:"
    return [table, text(f"{why}\nkill {' '.join(lost)}")]


def _row(cluster: ClusterStatus) -> Sequence[str | Cell]:
    state = Cell("running", Tone.GOOD) if cluster.running else Cell("stopped", Tone.DIM)
    if cluster.stray_pid:
        return [cluster.name, Cell(f"stray (pid {cluster.stray_pid})", Tone.BAD), *["-"] * 6]
    return [
        cluster.name,
        state,
        str(cluster.nodes),
        cluster.host,
        str(cluster.gpus),
        cluster.scenario or "-",
        cluster.context,
        cluster.url,
    ]

"""The one table of commands. A new group is one line here and one file beside it.

`--help` reads only this table, so it costs the same however much the commands import.
"""

from __future__ import annotations

from typing import NamedTuple

INVESTIGATE = "Investigate"
MAKE_ROOM = "Make room"
RUN = "Run"
SERVE = "Serve"
LOCAL = "Local cluster"
DIAGNOSE = "Diagnose"

HEADINGS = (INVESTIGATE, MAKE_ROOM, RUN, SERVE, LOCAL, DIAGNOSE)
"""In the order that `--help` shows them."""

OTHERS = "Other operations"
"""Those of the catalog that have no command of their own: the command is derived."""


DERIVED = ""
"""The target of commands that derive from their operations, and of groups of such commands."""


class Entry(NamedTuple):
    name: str
    target: str
    """`module:attribute` of the click command, imported when it is called or described."""
    summary: str
    heading: str


KVESTIGATE: tuple[Entry, ...] = (
    Entry(
        "audit",
        "kvestigate.cli.audit:audit",
        "Show every report of the cluster, and the problems found.",
        INVESTIGATE,
    ),
    Entry(
        "report",
        DERIVED,
        "Run one report of the audit.",
        INVESTIGATE,
    ),
    Entry(
        "namespaces",
        DERIVED,
        "List namespaces with their number of pods.",
        INVESTIGATE,
    ),
    Entry(
        "pods",
        DERIVED,
        "List the pods of all namespaces, or of one with -n.",
        INVESTIGATE,
    ),
    Entry(
        "describe",
        DERIVED,
        "Show one object in detail, with its events.",
        INVESTIGATE,
    ),
    Entry(
        "logs",
        "kvestigate.cli.logs:logs",
        "Show the log of a pod, or of all pods of a workload.",
        INVESTIGATE,
    ),
    Entry(
        "exec",
        "kvestigate.cli.exec:exec_",
        "Run a command in a container.",
        INVESTIGATE,
    ),
    Entry(
        "plan",
        "kvestigate.cli.plan:plan",
        "Check whether a workload fits into the free capacity, and on which nodes.",
        INVESTIGATE,
    ),
    Entry(
        "fanout",
        "kvestigate.cli.fanout:fanout",
        "Run a command or copy a file on many nodes or pods at once.",
        RUN,
    ),
    Entry(
        "node",
        DERIVED,
        "Cordon, uncordon and drain nodes.",
        MAKE_ROOM,
    ),
    Entry(
        "evict",
        DERIVED,
        "Evict the pods of a node, a namespace or a selector.",
        MAKE_ROOM,
    ),
    Entry(
        "scale",
        DERIVED,
        "Set the number of replicas of a Deployment; 0 stops it without deleting it.",
        MAKE_ROOM,
    ),
    Entry(
        "optimize",
        DERIVED,
        "Find idle and scattered GPUs, and move pods to free whole nodes.",
        MAKE_ROOM,
    ),
    Entry(
        "deploy",
        "kvestigate.cli.deploy:deploy",
        "Apply manifests in the required order, and show the changes.",
        RUN,
    ),
    Entry(
        "delete",
        DERIVED,
        "Delete one object, and show the objects that are deleted with it.",
        RUN,
    ),
    Entry(
        "app",
        "kvestigate.cli.app:app",
        "Run a program on a host or in pods, from one description.",
        RUN,
    ),
    Entry(
        "jobs",
        "kvestigate.cli.jobs:jobs",
        "Launch SkyPilot tasks on Kubernetes and look after them.",
        RUN,
    ),
    Entry(
        "volumes",
        "kvestigate.cli.volumes:volumes",
        "Create volumes for tasks and look after them.",
        RUN,
    ),
    Entry(
        "auth",
        "kvestigate.cli.auth:auth",
        "Say who you are to the job launcher.",
        RUN,
    ),
    Entry(
        "collect",
        "kvestigate.cli.collect:collect",
        "Stream workloads as normalised events, one a line.",
        RUN,
    ),
    Entry(
        "cybernet",
        "kvestigate.cli.cybernet:cybernet",
        "Offer agents a part of the cluster: allowed, counted and recorded.",
        SERVE,
    ),
    Entry(
        "workspace",
        "kvestigate.cli.workspace_runs:workspace",
        "Run things on the nodes' own operating system, without containers.",
        RUN,
    ),
    Entry(
        "plane",
        "kvestigate.cli.plane:plane",
        "Serve complete Kubernetes control planes, thousands in one process.",
        SERVE,
    ),
    Entry(
        "fleet",
        DERIVED,
        "Create and manage many identical planes as one object.",
        SERVE,
    ),
    Entry(
        "up",
        "kvestigate.cli.local:up",
        "Start a Kubernetes cluster on this machine: pods run as processes.",
        LOCAL,
    ),
    Entry(
        "demo",
        "kvestigate.cli.demo:demo",
        "Start a simulated GPU cluster, run a job on every node, and show the audit.",
        LOCAL,
    ),
    Entry(
        "down",
        "kvestigate.cli.local:down",
        "Stop a cluster and its pods; its objects are kept for the next `up`.",
        LOCAL,
    ),
    Entry(
        "status",
        "kvestigate.cli.local:status",
        "List the clusters on this machine.",
        LOCAL,
    ),
    Entry(
        "scenario",
        "kvestigate.cli.scenario:scenario",
        "Ready-made clusters, healthy and broken, to try commands on.",
        LOCAL,
    ),
    Entry(
        "kubeconfig",
        DERIVED,
        "What is in your kubeconfig, does it work, and the same in other forms.",
        DIAGNOSE,
    ),
    Entry(
        "debug",
        DERIVED,
        "Debug the connection to the cluster and its speed.",
        DIAGNOSE,
    ),
    Entry(
        "completion",
        "kvestigate.cli.completion:completion",
        "Print the completion script for your shell.",
        DIAGNOSE,
    ),
)

K8S_CLI: tuple[Entry, ...] = (
    Entry(
        "jobs",
        "kvestigate.cli.jobs:jobs",
        "Launch SkyPilot tasks on Kubernetes and look after them.",
        RUN,
    ),
    Entry(
        "volumes",
        "kvestigate.cli.volumes:volumes",
        "Create volumes for tasks and look after them.",
        RUN,
    ),
    Entry(
        "auth",
        "kvestigate.cli.auth:auth",
        "Say who you are to the job launcher.",
        RUN,
    ),
    Entry(
        "serve",
        "kvestigate.cli.job_server:serve",
        "Serve tasks and volumes over HTTP.",
        SERVE,
    ),
)

K8S_COLLECT: tuple[Entry, ...] = (
    Entry(
        "watch",
        "kvestigate.cli.collect:watch",
        "Watch a cluster and emit an event for each change of a workload.",
        RUN,
    ),
    Entry(
        "from-file",
        "kvestigate.cli.collect:from_file",
        "Emit what manifests hold, without a cluster.",
        RUN,
    ),
)

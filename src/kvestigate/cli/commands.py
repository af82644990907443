"""The one table of commands. A new group is one line here and one file beside it.

`--help` reads only this table, so it costs the same however much the commands import.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

OTHERS = "Other operations"
"""Those of the catalog that have no command of their own: the command is derived."""

DERIVED = ""
"""The target of commands that derive from their operations, and of groups of such commands."""


class Entry(NamedTuple):
    name: str
    target: str
    """`module:attribute` below `kvestigate.cli`, imported when it is called or described."""
    summary: str
    heading: str


_COMMANDS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "Investigate": (
        ("audit", "audit:audit", "Show every report of the cluster, and the problems found."),
        ("why", DERIVED, "Explain what is wrong with one object, down to the cause."),
        ("report", DERIVED, "Run one report of the audit."),
        ("namespaces", DERIVED, "List namespaces with their number of pods."),
        ("pods", DERIVED, "List the pods of all namespaces, or of one with -n."),
        ("describe", DERIVED, "Show one object in detail, with its events."),
        ("logs", "logs:logs", "Show the log of a pod, or of all pods of a workload."),
        ("exec", "exec:exec_", "Run a command in a container."),
        (
            "plan",
            "plan:plan",
            "Check whether a workload fits into the free capacity, and on which nodes.",
        ),
    ),
    "Make room": (
        ("node", DERIVED, "Cordon, uncordon and drain nodes."),
        ("evict", DERIVED, "Evict the pods of a node, a namespace or a selector."),
        (
            "scale",
            DERIVED,
            "Set the number of replicas of a Deployment; 0 stops it without deleting it.",
        ),
        ("optimize", DERIVED, "Find idle and scattered GPUs, and move pods to free whole nodes."),
    ),
    "Run": (
        ("fanout", "fanout:fanout", "Run a command or copy a file on many nodes or pods at once."),
        ("deploy", "deploy:deploy", "Apply manifests in the required order, and show the changes."),
        ("delete", DERIVED, "Delete one object, and show the objects that are deleted with it."),
        ("app", "app:app", "Run a program on a host or in pods, from one description."),
        ("jobs", "jobs:jobs", "Launch SkyPilot tasks on Kubernetes and look after them."),
        ("volumes", "volumes:volumes", "Create volumes for tasks and look after them."),
        ("auth", "auth:auth", "Log in to the job launcher."),
        ("collect", "collect:collect", "Stream workloads as normalised events, one a line."),
        (
            "workspace",
            "workspace_runs:workspace",
            "Run things on the nodes' own operating system, without containers.",
        ),
    ),
    "Serve": (
        ("ui", "ui:ui", "Show the clusters of your kubeconfig in a browser, live."),
        (
            "cybernet",
            "cybernet_tokens:cybernet",
            "Offer agents a part of the cluster: allowed, counted and recorded.",
        ),
        (
            "plane",
            "plane:plane",
            "Serve complete Kubernetes control planes, thousands in one process.",
        ),
        ("fleet", DERIVED, "Create and manage many identical planes as one object."),
    ),
    "Local cluster": (
        ("up", "local:up", "Start a Kubernetes cluster on this machine: pods run as processes."),
        (
            "demo",
            "demo:demo",
            "Start a simulated GPU cluster, run a job on every node, and show the audit.",
        ),
        (
            "down",
            "local:down",
            "Stop a cluster and its pods; objects and nodes' disks are kept for the next `up`.",
        ),
        ("status", "local:status", "List the clusters on this machine."),
        (
            "scenario",
            "scenario:scenario",
            "Ready-made clusters, healthy and broken, to try commands on.",
        ),
    ),
    "Diagnose": (
        (
            "kubeconfig",
            DERIVED,
            "Analyze, verify, convert and compare kubeconfig files.",
        ),
        ("debug", DERIVED, "Debug the connection to the cluster and its speed."),
        ("completion", "completion:completion", "Print the completion script for your shell."),
    ),
}
"""Heading -> name, target below `kvestigate.cli`, and summary, in the order of `--help`."""

HEADINGS = tuple(_COMMANDS)

KVESTIGATE = tuple(
    Entry(name, target, summary, heading)
    for heading, commands in _COMMANDS.items()
    for name, target, summary in commands
)
K8S_CLI = (
    *(entry for entry in KVESTIGATE if entry.name in ("jobs", "volumes", "auth")),
    Entry("serve", "job_server:serve", "Serve tasks and volumes over HTTP.", "Serve"),
)
K8S_COLLECT = (
    Entry(
        "watch",
        "collect:watch",
        "Watch a cluster and emit an event for each change of a workload.",
        "Run",
    ),
    Entry("from-file", "collect:from_file", "Emit what manifests hold, without a cluster.", "Run"),
)

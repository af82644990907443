"""The operations that look at single things of a cluster, as the catalog lists them."""

from __future__ import annotations

from kvestigate.inspection import describe, execute, lists, logs
from kvestigate.inspection.description import Description, blocks
from kvestigate.operation import (
    Effect,
    Operation,
    Touched,
    touches_nothing,
    with_access,
    with_progress,
)

NAMESPACES: Operation[lists.NamespacesOptions, lists.Namespaces] = Operation(
    name="namespaces",
    summary="List namespaces with their number of pods.",
    examples=("kvestigate namespaces", "kvestigate namespaces -o json"),
    input=lists.NamespacesOptions,
    output=lists.Namespaces,
    effect=Effect.READ,
    touches=touches_nothing,
    for_agents=True,
    handler=with_progress(lists.list_namespaces),
    counts=True,
    render=lists.namespaces_blocks,
)
PODS: Operation[lists.PodsOptions, lists.Pods] = Operation(
    name="pods",
    summary="List the pods of all namespaces, or of one with -n.",
    examples=(
        "kvestigate pods",
        "kvestigate pods -n shop -l app=web",
        "kvestigate pods -o wide",
    ),
    input=lists.PodsOptions,
    output=lists.Pods,
    effect=Effect.READ,
    touches=lambda options: Touched(namespaces=options.namespaces),
    for_agents=True,
    handler=with_progress(lists.list_pods),
    counts=True,
    render=lists.pods_blocks,
)
DESCRIBE: Operation[describe.DescribeOptions, Description] = Operation(
    name="describe",
    summary="Show one object in detail, with its events.",
    description=(
        "KIND is any type of the cluster: pod, svc, deploy, node, widgets.example.org. KIND/NAME "
        "works, too. The values of Secrets are not shown."
    ),
    examples=(
        "kvestigate describe pod web-0 -n shop",
        "kvestigate describe node node-04",
        "kvestigate describe ingress front -n shop -o yaml",
    ),
    input=describe.DescribeOptions,
    output=Description,
    effect=Effect.READ,
    touches=touches_nothing,
    for_agents=True,
    handler=with_progress(describe.collect),
    counts=True,
    render=blocks,
)
LOGS: Operation[logs.LogsOptions, logs.Logs] = Operation(
    name="logs",
    summary="Show the log of a pod, or of all pods of a workload.",
    input=logs.LogsOptions,
    output=logs.Logs,
    effect=Effect.READ,
    touches=touches_nothing,
    for_agents=True,
    handler=with_access(logs.collect),
)
EXEC: Operation[execute.ExecOptions, execute.ExecResult] = Operation(
    name="exec",
    summary="Run a command in a container.",
    input=execute.ExecOptions,
    output=execute.ExecResult,
    # The command may change anything.
    effect=Effect.WRITE,
    touches=touches_nothing,
    handler=with_access(execute.collect),
)

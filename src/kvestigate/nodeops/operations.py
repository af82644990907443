"""The operations on nodes and workloads, as the catalog lists them."""

from __future__ import annotations

from dataclasses import replace

from kvestigate.errors import EXIT_CONFLICT, EXIT_FAILED, EXIT_OK, EXIT_TIMEOUT, EXIT_USAGE
from kvestigate.nodeops.cordon import (
    Cordoning,
    CordonOptions,
    cordon,
    cordoning_blocks,
    uncordon,
)
from kvestigate.nodeops.evict import (
    BLOCKED,
    GONE,
    LEAVING,
    UNASKED,
    DrainOptions,
    Evictions,
    EvictOptions,
    clear,
    drain,
    evict,
)
from kvestigate.nodeops.rendering import evictions_blocks
from kvestigate.nodeops.scale import ScaleOptions, Scaling, scale, scaling_blocks
from kvestigate.operation import (
    Consequence,
    Effect,
    Operation,
    Touched,
    touches_nothing,
)

CORDON: Operation[CordonOptions, Cordoning] = Operation(
    name="node.cordon",
    summary="Mark a node unschedulable; its pods stay.",
    description="It can be undone with `uncordon`, so --apply may be left out.",
    examples=("kvestigate node cordon gpu-node-7 --i-understand-this-modifies-cluster",),
    input=CordonOptions,
    output=Cordoning,
    effect=Effect.WRITE,
    consequence=Consequence.MODIFIES_CLUSTER,
    needs_apply=False,
    touches=lambda options: Touched(nodes=(options.node,)),
    handler=cordon,
    render=cordoning_blocks,
    pending=lambda done: done.before != done.after,
)

UNCORDON = replace(
    CORDON,
    name="node.uncordon",
    summary="Mark a node schedulable again.",
    description="It can be undone with `cordon`, so --apply may be left out.",
    examples=("kvestigate node uncordon gpu-node-7 --i-understand-this-modifies-cluster",),
    handler=uncordon,
)

SCALE: Operation[ScaleOptions, Scaling] = Operation(
    name="scale",
    summary="Set the number of replicas of a Deployment; 0 stops it without deleting it.",
    description="For a StatefulSet or ReplicaSet, give the kind: statefulset/NAME.",
    examples=(
        "kvestigate scale my-app 5 -n my-ns",
        "kvestigate scale my-app 0 -n my-ns --apply --i-understand-this-modifies-cluster",
        "kvestigate scale statefulset/db 3 -n my-ns",
    ),
    input=ScaleOptions,
    output=Scaling,
    effect=Effect.WRITE,
    consequence=Consequence.MODIFIES_CLUSTER,
    touches=touches_nothing,
    handler=scale,
    render=scaling_blocks,
    pending=lambda done: done.before != done.after,
)


def _exit_code(done: Evictions) -> int:
    if done.refused:
        return EXIT_USAGE
    if done.count(GONE) == len(done.pods):
        return EXIT_OK
    if done.count(LEAVING) or done.count(UNASKED):
        return EXIT_TIMEOUT
    return EXIT_CONFLICT if done.count(BLOCKED) else EXIT_FAILED


def _touches(options: EvictOptions) -> Touched:
    namespaces = (options.namespace,) if options.namespace else ()
    return Touched(nodes=(options.node,) if options.node else (), namespaces=namespaces)


DRAIN: Operation[DrainOptions, Evictions] = Operation(
    name="node.drain",
    summary="Cordon a node and evict its pods.",
    description=(
        "The plan says of each pod what happens to it. DaemonSet, static, terminating and "
        "completed pods stay, and so do pods of system namespaces. Pods that no controller "
        "recreates are refused without --force, pods with emptyDir volumes without "
        "--delete-emptydir-data; while a pod is refused, nothing is done, and the exit code is 2. "
        "An eviction that a PodDisruptionBudget blocks is tried again until --timeout. The exit "
        "code is 6 if a budget still blocks a pod then, 7 if a pod has not terminated."
    ),
    examples=(
        "kvestigate node drain gpu-node-7",
        "kvestigate node drain gpu-node-7 --apply --i-understand-this-disrupts-workloads",
    ),
    input=DrainOptions,
    output=Evictions,
    effect=Effect.DESTROY,
    consequence=Consequence.DISRUPTS_WORKLOADS,
    touches=lambda options: Touched(nodes=(options.node,)),
    handler=drain,
    doing=lambda options: "waiting for",
    counts=True,
    render=evictions_blocks,
    pending=lambda done: not done.nothing_to_do,
    exit_code=_exit_code,
)

CLEAR = replace(
    DRAIN,
    name="node.clear",
    summary="Evict the pods of a node; the node stays schedulable.",
    description="The same pods stay as with `drain`, and the exit codes are the same.",
    examples=(
        "kvestigate node clear gpu-node-7",
        "kvestigate node clear gpu-node-7 --apply --i-understand-this-disrupts-workloads",
    ),
    handler=clear,
)

EVICT: Operation[EvictOptions, Evictions] = Operation(
    name="evict",
    summary="Evict the pods of a node, a namespace or a selector.",
    description=(
        "At least one of --node, --namespace and --selector is needed; together they narrow the "
        "selection. Nodes stay schedulable. The same pods stay as with `node drain`, and the exit "
        "codes are the same."
    ),
    examples=(
        "kvestigate evict --node gpu-node-7",
        "kvestigate evict -n batch-jobs --apply --i-understand-this-disrupts-workloads",
        "kvestigate evict -l app=stale-trainer -n research",
    ),
    input=EvictOptions,
    output=Evictions,
    effect=Effect.DESTROY,
    consequence=Consequence.DISRUPTS_WORKLOADS,
    touches=_touches,
    handler=evict,
    doing=lambda options: "waiting for",
    counts=True,
    render=evictions_blocks,
    pending=lambda done: not done.nothing_to_do,
    exit_code=_exit_code,
)

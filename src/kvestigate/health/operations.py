"""The operations of `audit`, as the catalog lists them."""

from __future__ import annotations

from kvestigate.health.audit import Audit, AuditOptions, collect
from kvestigate.health.difference import AuditDifference, DiffOptions, blocks, difference
from kvestigate.health.rendering import audit_blocks
from kvestigate.health.why import Why, WhyOptions
from kvestigate.health.why import blocks as why_blocks
from kvestigate.health.why import collect as why
from kvestigate.operation import Context, Effect, Operation, touches_nothing, with_progress


async def _difference(context: Context, options: DiffOptions) -> AuditDifference:
    return difference(options.before, options.after)


AUDIT: Operation[AuditOptions, Audit] = Operation(
    name="audit",
    summary="Show every report of the cluster, and the problems found.",
    input=AuditOptions,
    output=Audit,
    effect=Effect.READ,
    touches=touches_nothing,
    for_agents=True,
    handler=with_progress(collect),
    counts=True,
    render=audit_blocks,
)
DIFF: Operation[DiffOptions, AuditDifference] = Operation(
    name="audit.diff",
    summary="Show what changed between two audits that `audit --json` wrote.",
    input=DiffOptions,
    output=AuditDifference,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=_difference,
    render=blocks,
)
WHY: Operation[WhyOptions, Why] = Operation(
    name="why",
    summary="Explain what is wrong with one object, down to the cause.",
    description=(
        "Follows what the object depends on: an Ingress to its Services, a Service to its pods, a "
        "pod to its node, claims, Secrets and ConfigMaps. Says for each what it is supposed to do, "
        "what it does, and what is wrong. KIND is any type of the cluster; KIND/NAME works, too."
    ),
    examples=(
        "kvestigate why deploy web -n shop",
        "kvestigate why svc/api -n shop",
        "kvestigate why pvc data -n shop -o json",
        "kvestigate why namespace old-team",
    ),
    input=WhyOptions,
    output=Why,
    effect=Effect.READ,
    touches=touches_nothing,
    for_agents=True,
    handler=with_progress(why),
    counts=True,
    render=why_blocks,
)

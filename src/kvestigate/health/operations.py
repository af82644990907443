"""The operations of `audit`, as the catalog lists them."""

from __future__ import annotations

from kvestigate.health.audit import Audit, AuditOptions, collect
from kvestigate.health.difference import AuditDifference, DiffOptions, blocks, difference
from kvestigate.health.rendering import audit_blocks
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

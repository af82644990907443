"""The operation of `plan`, as the catalog lists it."""

from __future__ import annotations

from kvestigate.errors import EXIT_FAILED, EXIT_OK
from kvestigate.operation import Effect, Operation, touches_nothing, with_progress
from kvestigate.planning.plan import Plan, PlanOptions, collect
from kvestigate.planning.rendering import plan_blocks

PLAN: Operation[PlanOptions, Plan] = Operation(
    name="plan",
    summary="Check whether a workload fits into the free capacity, and on which nodes.",
    input=PlanOptions,
    output=Plan,
    effect=Effect.READ,
    touches=touches_nothing,
    for_agents=True,
    handler=with_progress(collect),
    counts=True,
    render=plan_blocks,
    exit_code=lambda plan: EXIT_OK if plan.fits else EXIT_FAILED,
)

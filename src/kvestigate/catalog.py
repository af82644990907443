"""The one list of operations: what the gateway and MCP offer, and the CLI has a command for."""

from __future__ import annotations

from kvestigate.debug import api, context, exec_url, timing
from kvestigate.fanout import operations as fanout
from kvestigate.inspection import describe, execute, lists, logs
from kvestigate.jobs import operations as jobs
from kvestigate.manifests import delete, deploy
from kvestigate.nodeops import cordon, evict, scale
from kvestigate.operation import Operation
from kvestigate.optimize import operations as optimize
from kvestigate.planes import environment, fleets
from kvestigate.planes import manage as planes
from kvestigate.planning import plan
from kvestigate.reports import audit
from kvestigate.reports import run as reports
from kvestigate.workspace import operations as workspaces

OPERATIONS: tuple[Operation, ...] = (
    audit.OPERATION,
    reports.LIST,
    reports.RUN,
    lists.NAMESPACES,
    lists.PODS,
    describe.OPERATION,
    logs.OPERATION,
    execute.OPERATION,
    plan.OPERATION,
    *fanout.OPERATIONS,
    cordon.CORDON,
    cordon.UNCORDON,
    evict.DRAIN,
    evict.CLEAR,
    evict.EVICT,
    scale.OPERATION,
    *optimize.OPERATIONS,
    deploy.OPERATION,
    delete.OPERATION,
    context.OPERATION,
    api.OPERATION,
    timing.OPERATION,
    exec_url.OPERATION,
    planes.LIST,
    planes.CREATE,
    planes.DELETE,
    *environment.OPERATIONS,
    *fleets.OPERATIONS,
    *jobs.OPERATIONS,
    *workspaces.OPERATIONS,
)

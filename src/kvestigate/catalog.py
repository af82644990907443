"""The one list of operations: what the gateway and MCP offer, and the CLI has a command for."""

from __future__ import annotations

from kvestigate.clusters import manage as clusters
from kvestigate.debug import api, context, exec_url, timing
from kvestigate.operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    context.OPERATION,
    api.OPERATION,
    timing.OPERATION,
    exec_url.OPERATION,
    clusters.LIST,
    clusters.CREATE,
    clusters.DELETE,
)

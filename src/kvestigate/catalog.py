"""The one list of operations, by name: what HTTP and MCP may offer, and what commands run.

A line names where an operation is declared; it is imported when somebody asks for it, so that
`--help` costs the same however many there are. An operation needs no command of its own: the
command line derives one from the declaration (`cli/derived.py`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvestigate.operation import Operation

CATALOG: dict[str, str] = {
    "audit": "kvestigate.health.operations:AUDIT",
    "audit.diff": "kvestigate.health.operations:DIFF",
    "why": "kvestigate.health.operations:WHY",
    "report.list": "kvestigate.reports.operations:LIST",
    "report.run": "kvestigate.reports.operations:RUN",
    "namespaces": "kvestigate.inspection.namespaces:NAMESPACES",
    "pods": "kvestigate.inspection.pods:PODS",
    "describe": "kvestigate.inspection.describe:DESCRIBE",
    "logs": "kvestigate.inspection.logs:LOGS",
    "exec": "kvestigate.inspection.execute:EXEC",
    "plan": "kvestigate.planning.operations:PLAN",
    "fanout.targets": "kvestigate.fanout.operations:TARGETS",
    "fanout.exec": "kvestigate.fanout.operations:EXEC",
    "fanout.fetch": "kvestigate.fanout.operations:FETCH",
    "fanout.push": "kvestigate.fanout.operations:PUSH",
    "fanout.manifest": "kvestigate.fanout.operations:MANIFEST",
    "node.cordon": "kvestigate.nodeops.operations:CORDON",
    "node.uncordon": "kvestigate.nodeops.operations:UNCORDON",
    "node.drain": "kvestigate.nodeops.operations:DRAIN",
    "node.clear": "kvestigate.nodeops.operations:CLEAR",
    "evict": "kvestigate.nodeops.operations:EVICT",
    "scale": "kvestigate.nodeops.operations:SCALE",
    "optimize.analyze": "kvestigate.optimize.operations:ANALYZE",
    "optimize.plan": "kvestigate.optimize.operations:PLAN",
    "optimize.probe-gpu": "kvestigate.optimize.operations:PROBE",
    "optimize.health": "kvestigate.optimize.operations:HEALTH",
    "optimize.waste": "kvestigate.optimize.operations:WASTE",
    "optimize.watch": "kvestigate.optimize.operations:WATCH",
    "optimize.apply": "kvestigate.optimize.operations:APPLY",
    "deploy": "kvestigate.manifests.operations:DEPLOY",
    "delete": "kvestigate.manifests.operations:DELETE",
    "debug.context": "kvestigate.debug.operations:CONTEXT",
    "debug.api": "kvestigate.debug.operations:API",
    "debug.timing": "kvestigate.debug.operations:TIMING",
    "debug.exec-url": "kvestigate.debug.operations:EXEC_URL",
    "kubeconfig.analyze": "kvestigate.kubeconfigs.operations:ANALYZE",
    "kubeconfig.verify": "kvestigate.kubeconfigs.operations:VERIFY",
    "kubeconfig.convert": "kvestigate.kubeconfigs.operations:CONVERT",
    "kubeconfig.diff": "kvestigate.kubeconfigs.operations:DIFF",
    "plane.list": "kvestigate.planes.operations:LIST",
    "plane.create": "kvestigate.planes.operations:CREATE",
    "plane.delete": "kvestigate.planes.operations:DELETE",
    "plane.snapshot": "kvestigate.planes.operations:SNAPSHOT",
    "plane.fork": "kvestigate.planes.operations:FORK",
    "plane.checkpoint": "kvestigate.planes.operations:CHECKPOINT",
    "plane.restore": "kvestigate.planes.operations:RESTORE",
    "plane.diff": "kvestigate.planes.operations:DIFF",
    "plane.events": "kvestigate.planes.operations:EVENTS",
    "plane.step": "kvestigate.planes.operations:STEP",
    "fleet.create": "kvestigate.planes.operations:FLEET_CREATE",
    "fleet.scale": "kvestigate.planes.operations:FLEET_SCALE",
    "fleet.status": "kvestigate.planes.operations:FLEET_STATUS",
    "fleet.delete": "kvestigate.planes.operations:FLEET_DELETE",
    "jobs.submit": "kvestigate.jobs.operations:SUBMIT",
    "jobs.list": "kvestigate.jobs.operations:LIST",
    "jobs.status": "kvestigate.jobs.operations:STATUS",
    "jobs.queue": "kvestigate.jobs.operations:QUEUE",
    "jobs.history": "kvestigate.jobs.operations:HISTORY",
    "jobs.endpoint": "kvestigate.jobs.operations:ENDPOINT",
    "jobs.why": "kvestigate.jobs.operations:WHY",
    "jobs.stop": "kvestigate.jobs.operations:STOP",
    "jobs.cancel": "kvestigate.jobs.operations:CANCEL",
    "jobs.logs": "kvestigate.jobs.operations:LOGS",
    "volumes.create": "kvestigate.jobs.operations:CREATE_VOLUME",
    "volumes.list": "kvestigate.jobs.operations:LIST_VOLUMES",
    "volumes.status": "kvestigate.jobs.operations:VOLUME_STATUS",
    "volumes.resize": "kvestigate.jobs.operations:RESIZE_VOLUME",
    "volumes.ls": "kvestigate.jobs.operations:VOLUME_FILES",
    "volumes.cp": "kvestigate.jobs.operations:COPY",
    "volumes.delete": "kvestigate.jobs.operations:DELETE_VOLUME",
    "app.render": "kvestigate.app.operations:RENDER",
    "app.plan": "kvestigate.app.operations:PLAN",
    "app.up": "kvestigate.app.operations:UP",
    "app.down": "kvestigate.app.operations:DOWN",
    "app.diff": "kvestigate.app.operations:DIFF",
    "app.status": "kvestigate.app.operations:STATUS",
    "app.list": "kvestigate.app.operations:LIST",
    "workspace.apply": "kvestigate.workspace.operations:APPLY",
    "workspace.export": "kvestigate.workspace.operations:EXPORT",
    "workspace.cordon": "kvestigate.workspace.operations:CORDON",
    "workspace.uncordon": "kvestigate.workspace.operations:UNCORDON",
    "workspace.status": "kvestigate.workspace.operations:STATUS",
    "workspace.gpus": "kvestigate.workspace.operations:GPUS",
    "workspace.diff": "kvestigate.workspace.operations:DIFF",
    "workspace.ps": "kvestigate.workspace.operations:PS",
    "workspace.logs": "kvestigate.workspace.operations:LOGS",
    "workspace.fetch": "kvestigate.workspace.operations:FETCH",
    "workspace.list_files": "kvestigate.workspace.operations:LIST_FILES",
    "workspace.get_text": "kvestigate.workspace.operations:GET_TEXT",
    "workspace.put_text": "kvestigate.workspace.operations:PUT_TEXT",
    "workspace.edit": "kvestigate.workspace.operations:EDIT",
    "workspace.create": "kvestigate.workspace.operations:CREATE",
    "workspace.sync": "kvestigate.workspace.operations:SYNC",
    "workspace.run": "kvestigate.workspace.operations:RUN",
    "workspace.kill": "kvestigate.workspace.operations:KILL",
    "workspace.destroy": "kvestigate.workspace.operations:DESTROY",
}
"""Name -> `module:attribute`."""


def operation(name: str) -> Operation[Any, Any]:
    """The operation of that name; KeyError if the catalog has none."""
    module, _, attribute = CATALOG[name].partition(":")
    declared: Operation[Any, Any] = getattr(importlib.import_module(module), attribute)
    assert declared.name == name, f"{CATALOG[name]} is called {declared.name}, not {name}"
    return declared


def operations() -> tuple[Operation[Any, Any], ...]:
    """All of them."""
    return tuple(map(operation, CATALOG))

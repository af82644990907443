"""Columns of what makes pods: apps, batch and their elders in the core group. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Column,
    Columns,
    at,
    column,
    condition,
    containers,
    integer,
    pairs,
    since,
    size,
)
from kvestigate.errors import InputError
from kvestigate.kube import selectors
from kvestigate.render import human

# What a job is called, in the order in which the first one that holds counts.
_OUTCOMES = ("Complete", "Failed")
_STAGES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def selected(path: str, none: str = NONE) -> Callable[[Object], str]:
    """The label selector at a path, in one line."""

    def read(obj: Object) -> str:
        try:
            return str(selectors.from_label_selector(at(obj, *path.split(".")))) or none
        except InputError:
            return "<error>"

    return read


def _ready(obj: Object) -> str:
    return f"{obj['status'].get('readyReplicas', 0)}/{obj['spec'].get('replicas', 0)}"


_PODS = (
    *containers("spec.template"),
    column("Selector", selected("spec.selector"), wide=True),
)
_REPLICAS = (
    integer("Desired", "spec.replicas"),
    integer("Current", "status.replicas"),
    integer("Ready", "status.readyReplicas"),
)

DEPLOYMENTS = Columns(
    NAME,
    column("Ready", _ready),
    column("Up-to-date", "status.updatedReplicas", 0),
    column("Available", "status.availableReplicas", 0),
    AGE,
    *containers("spec.template"),
    column("Selector", selected("spec.selector", ""), wide=True),
)
REPLICA_SETS = Columns(NAME, *_REPLICAS, AGE, *_PODS)
REPLICATION_CONTROLLERS = Columns(
    NAME,
    *_REPLICAS,
    AGE,
    *containers("spec.template"),
    column("Selector", lambda obj: pairs(obj["spec"].get("selector")), wide=True),
)
STATEFUL_SETS = Columns(NAME, column("Ready", _ready), AGE, *containers("spec.template"))
DAEMON_SETS = Columns(
    NAME,
    integer("Desired", "status.desiredNumberScheduled"),
    integer("Current", "status.currentNumberScheduled"),
    integer("Ready", "status.numberReady"),
    integer("Up-to-date", "status.updatedNumberScheduled"),
    integer("Available", "status.numberAvailable"),
    column("Node Selector", lambda obj: pairs(at(obj, "spec", "template", "spec", "nodeSelector"))),
    AGE,
    *_PODS,
)


def _controller(obj: Object) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = owner["apiVersion"].rpartition("/")[0]
            kind = f"{owner['kind']}.{group}" if group else owner["kind"]
            return f"{kind.lower()}/{owner['name']}"
    return NONE


CONTROLLER_REVISIONS = Columns(
    NAME, column("Controller", _controller), column("Revision", "revision", 0), AGE
)


def _stage(obj: Object) -> str:
    for name in _OUTCOMES:
        if condition(obj, name) == "True":
            return name
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((name for name in _STAGES if condition(obj, name) == "True"), "Running")


def _completions(obj: Object) -> str:
    spec, succeeded = obj["spec"], obj["status"].get("succeeded", 0)
    if "completions" in spec:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism", 0)
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(obj: Object, now: float) -> str:
    start, end = obj["status"].get("startTime"), obj["status"].get("completionTime")
    if not start:
        return ""
    until = datetime.fromisoformat(end).timestamp() if end else now
    return human.age(until - datetime.fromisoformat(start).timestamp())


JOBS = Columns(
    NAME,
    column("Status", _stage),
    column("Completions", _completions),
    Column("Duration", _duration),
    AGE,
    *_PODS,
)


def _last_schedule(obj: Object, now: float) -> str:
    last = obj["status"].get("lastScheduleTime")
    return since(last, now) if last else NONE


CRON_JOBS = Columns(
    NAME,
    column("Schedule", "spec.schedule"),
    column("Timezone", "spec.timeZone", NONE),
    column("Suspend", lambda obj: str(obj["spec"].get("suspend", UNSET)), type="boolean"),
    integer("Active", size("status.active")),
    Column("Last Schedule", _last_schedule),
    AGE,
    *containers("spec.jobTemplate.spec.template"),
    column("Selector", selected("spec.jobTemplate.spec.selector"), wide=True),
)
POD_TEMPLATES = Columns(
    NAME,
    *containers("template", wide=False),
    column("Pod Labels", lambda obj: pairs(at(obj, "template", "metadata", "labels"))),
)

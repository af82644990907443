"""Columns of what makes pods: apps and batch. Pure."""

from __future__ import annotations

from datetime import datetime

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Cells,
    Column,
    Columns,
    age,
    condition,
    container_images,
    container_names,
    pairs,
    since,
    strings,
    wide,
)
from kvestigate.errors import InputError
from kvestigate.kube import selectors
from kvestigate.render import human

_DAEMON_COUNTERS = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
)
# What a job is called, in the order in which the first one that holds counts.
_OUTCOMES = ("Complete", "Failed")
_STAGES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def selected(selector: Object | None) -> str:
    """A label selector in one line."""
    try:
        return str(selectors.from_label_selector(selector)) or NONE
    except InputError:
        return "<error>"


def integers(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "integer") for name in names)


def _containers(template: Object) -> list[str]:
    containers = template["spec"].get("containers")
    return [container_names(containers), container_images(containers)]


def _deployment(obj: Object, now: float) -> Cells:
    spec, status = obj["spec"], obj["status"]
    return [
        obj["metadata"]["name"],
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now),
        *_containers(spec["template"]),
        str(selectors.from_label_selector(spec.get("selector"))),
    ]


def _replica_set(obj: Object, now: float) -> Cells:
    spec, status = obj["spec"], obj["status"]
    return [
        obj["metadata"]["name"],
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj, now),
        *_containers(spec["template"]),
        selected(spec.get("selector")),
    ]


def _stateful_set(obj: Object, now: float) -> Cells:
    spec, status = obj["spec"], obj["status"]
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [obj["metadata"]["name"], ready, age(obj, now), *_containers(spec["template"])]


def _daemon_set(obj: Object, now: float) -> Cells:
    spec, status = obj["spec"], obj["status"]
    return [
        obj["metadata"]["name"],
        *(status.get(name, 0) for name in _DAEMON_COUNTERS),
        pairs(spec["template"]["spec"].get("nodeSelector")),
        age(obj, now),
        *_containers(spec["template"]),
        selected(spec.get("selector")),
    ]


def _revision(obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], _controller(obj), obj.get("revision", 0), age(obj, now)]


def _controller(obj: Object) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = owner["apiVersion"].rpartition("/")[0]
            kind = f"{owner['kind']}.{group}" if group else owner["kind"]
            return f"{kind.lower()}/{owner['name']}"
    return NONE


def _job(obj: Object, now: float) -> Cells:
    spec = obj["spec"]
    return [
        obj["metadata"]["name"],
        _stage(obj),
        _completions(obj),
        _duration(obj["status"], now),
        age(obj, now),
        *_containers(spec["template"]),
        selected(spec.get("selector")),
    ]


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


def _duration(status: Object, now: float) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    until = datetime.fromisoformat(end).timestamp() if end else now
    return human.age(until - datetime.fromisoformat(start).timestamp())


def _cron_job(obj: Object, now: float) -> Cells:
    spec, status = obj["spec"], obj["status"]
    job, last = spec["jobTemplate"]["spec"], status.get("lastScheduleTime")
    return [
        obj["metadata"]["name"],
        spec["schedule"],
        spec.get("timeZone", NONE),
        str(spec["suspend"]) if "suspend" in spec else UNSET,
        len(status.get("active") or ()),
        since(last, now) if last else NONE,
        age(obj, now),
        *_containers(job["template"]),
        selected(job.get("selector")),
    ]


_PODS = wide("Containers", "Images", "Selector")

DEPLOYMENTS = Columns(
    (NAME, *strings("Ready", "Up-to-date", "Available", "Age"), *_PODS), _deployment
)
REPLICA_SETS = Columns((NAME, *integers("Desired", "Current", "Ready"), AGE, *_PODS), _replica_set)
STATEFUL_SETS = Columns(
    (NAME, *strings("Ready", "Age"), *wide("Containers", "Images")), _stateful_set
)
DAEMON_SETS = Columns(
    (
        NAME,
        *integers("Desired", "Current", "Ready", "Up-to-date", "Available"),
        *strings("Node Selector", "Age"),
        *_PODS,
    ),
    _daemon_set,
)
CONTROLLER_REVISIONS = Columns((NAME, *strings("Controller", "Revision", "Age")), _revision)
JOBS = Columns((NAME, *strings("Status", "Completions", "Duration", "Age"), *_PODS), _job)
CRON_JOBS = Columns(
    (
        NAME,
        *strings("Schedule", "Timezone"),
        Column("Suspend", "boolean"),
        Column("Active", "integer"),
        *strings("Last Schedule", "Age"),
        *_PODS,
    ),
    _cron_job,
)


def _replication_controller(obj: Object, now: float) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers")
    return [
        obj["metadata"]["name"],
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj, now),
        container_names(containers),
        container_images(containers),
        pairs(spec.get("selector")),
    ]


def _pod_template(obj: Object, now: float) -> Cells:
    template = obj["template"]
    containers = template["spec"].get("containers")
    return [
        obj["metadata"]["name"],
        container_names(containers),
        container_images(containers),
        pairs((template.get("metadata") or {}).get("labels")),
    ]


REPLICATION_CONTROLLERS = Columns(
    (
        NAME,
        *(Column(name, "integer") for name in ("Desired", "Current", "Ready")),
        AGE,
        *wide("Containers", "Images", "Selector"),
    ),
    _replication_controller,
)
POD_TEMPLATES = Columns((NAME, *strings("Containers", "Images", "Pod Labels")), _pod_template)

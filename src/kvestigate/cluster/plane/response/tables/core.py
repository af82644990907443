"""Columns of the core kinds that need a few lines each, of Events and of metrics. Pure."""

from __future__ import annotations

from collections.abc import Callable

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Column,
    Columns,
    at,
    column,
    condition,
    filled,
    integer,
    since,
    size,
)
from kvestigate.kube import quantities

CONFIG_MAPS = Columns(NAME, column("Data", size("data", "binaryData")), AGE)
SECRETS = Columns(NAME, column("Type", "type"), column("Data", size("data")), AGE)
NAME_AND_AGE = Columns(NAME, AGE)
NAMESPACES = Columns(NAME, column("Status", "status.phase"), AGE)


def _usage_of(*, limits: bool) -> Callable[[Object], str]:
    """Used and hard amounts of a quota: those that count limits, or all others."""

    def read(obj: Object) -> str:
        hard, used = at(obj, "status", "hard") or {}, at(obj, "status", "used") or {}
        names = [name for name in sorted(hard) if name.startswith("limits.") is limits]
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return read


RESOURCE_QUOTAS = Columns(
    NAME, column("Request", _usage_of(limits=False)), column("Limit", _usage_of(limits=True)), AGE
)
SCALES = Columns(
    column("Name", "metadata.name"),
    integer("Desired", "spec.replicas"),
    integer("Available", "status.replicas"),
    AGE,
)

# -- nodes -----------------------------------------------------------------------------------

_ROLE, _OLD_ROLE = "node-role.kubernetes.io/", "kubernetes.io/role"
_READINESS = {"": "Unknown", "True": "Ready"}


def _node_status(obj: Object) -> str:
    text = _READINESS.get(condition(obj, "Ready"), "NotReady")
    return f"{text},SchedulingDisabled" if obj["spec"].get("unschedulable") else text


def _roles(obj: Object) -> str:
    labels = obj["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    roles.add(labels.get(_OLD_ROLE, ""))
    return ",".join(sorted(roles - {""})) or NONE


def _address(type_: str) -> Callable[[Object], str]:
    def read(obj: Object) -> str:
        addresses = at(obj, "status", "addresses") or ()
        return next((each["address"] for each in addresses if each["type"] == type_), NONE)

    return read


def _kernel(obj: Object) -> str:
    info = at(obj, "status", "nodeInfo") or {}
    architecture = f" ({info['architecture']})" if info.get("architecture") else ""
    return f"{info.get('kernelVersion') or UNKNOWN}{architecture}"


NODES = Columns(
    NAME,
    column("Status", _node_status),
    column("Roles", _roles),
    AGE,
    column("Version", "status.nodeInfo.kubeletVersion"),
    column("Internal-IP", _address("InternalIP"), wide=True),
    column("External-IP", _address("ExternalIP"), wide=True),
    column("OS-Image", filled("status.nodeInfo.osImage", UNKNOWN), wide=True),
    column("Kernel-Version", _kernel, wide=True),
    column(
        "Container-Runtime", filled("status.nodeInfo.containerRuntimeVersion", UNKNOWN), wide=True
    ),
)

# -- events, of the core group and of their own ----------------------------------------------


def _first_seen(obj: Object, now: float) -> str:
    return since(obj.get("firstTimestamp") or obj.get("eventTime"), now)


def _last_seen(obj: Object, now: float) -> str:
    if series := obj.get("series"):
        return since(series.get("lastObservedTime"), now)
    return since(obj["lastTimestamp"], now) if obj.get("lastTimestamp") else _first_seen(obj, now)


def _count(obj: Object) -> int:
    series = obj.get("series")
    count: int = series.get("count", 0) if series else obj.get("count") or 1
    return count


def _involved(obj: Object) -> str:
    involved = obj.get("involvedObject") or {}
    kind, name = involved.get("kind", "").lower(), involved.get("name", "")
    return f"{kind}/{name}" if name else kind


def _source(obj: Object) -> str:
    source = obj.get("source") or {}
    component = source.get("component") or obj.get("reportingComponent", "")
    host = source.get("host") or obj.get("reportingInstance", "")
    return ", ".join(part for part in (component, host) if part)


EVENTS = Columns(
    Column("Last Seen", _last_seen),
    column("Type", "type"),
    column("Reason", "reason"),
    column("Object", _involved),
    column("Subobject", "involvedObject.fieldPath", wide=True),
    column("Source", _source, wide=True),
    column("Message", lambda obj: obj.get("message", "").strip()),
    Column("First Seen", _first_seen, priority=1),
    column("Count", _count, wide=True),
    column("Name", "metadata.name", format="name", wide=True),
)

# -- metrics.k8s.io --------------------------------------------------------------------------


def _usages(obj: Object) -> list[dict[str, str]]:
    """The usage of a node, or of each container of a pod."""
    return [each["usage"] for each in obj.get("containers", [obj])]


def _cpu(obj: Object) -> str:
    return f"{sum(quantities.parse(usage['cpu']).nanos for usage in _usages(obj))}n"


def _memory(obj: Object) -> str:
    return f"{sum(quantities.whole(usage['memory']) for usage in _usages(obj)) // 1024}Ki"


METRICS = Columns(
    NAME,
    column("cpu", _cpu, format="quantity"),
    column("memory", _memory, format="quantity"),
    column("Window", "window", format="duration"),
)

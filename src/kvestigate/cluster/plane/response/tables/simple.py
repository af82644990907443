"""Columns of kinds that take a few lines: ConfigMaps, Secrets, Namespaces, quotas. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    AGE,
    NAME,
    Cells,
    Column,
    Columns,
    age,
    strings,
)
from kvestigate.kube import quantities


def _config_map(obj: Object, now: float) -> Cells:
    entries = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    return [obj["metadata"]["name"], entries, age(obj, now)]


def _secret(obj: Object, now: float) -> Cells:
    return [
        obj["metadata"]["name"],
        obj.get("type", ""),
        len(obj.get("data") or ()),
        age(obj, now),
    ]


def _account(obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], age(obj, now)]


CONFIG_MAPS = Columns((NAME, *strings("Data", "Age")), _config_map)
SECRETS = Columns((NAME, *strings("Type", "Data", "Age")), _secret)
SERVICE_ACCOUNTS = Columns((NAME, AGE), _account)


def _namespace(obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], (obj.get("status") or {}).get("phase", ""), age(obj, now)]


NAMESPACES = Columns((NAME, *strings("Status", "Age")), _namespace)


def _quota(obj: Object, now: float) -> Cells:
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    usage = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = [text for name, text in usage.items() if name.startswith("limits.")]
    requests = [text for name, text in usage.items() if not name.startswith("limits.")]
    return [obj["metadata"]["name"], ", ".join(requests), ", ".join(limits), age(obj, now)]


RESOURCE_QUOTAS = Columns((NAME, *strings("Request", "Limit", "Age")), _quota)


def _scale(obj: Object, now: float) -> Cells:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    counts = [spec.get("replicas", 0), status.get("replicas", 0)]
    return [obj["metadata"]["name"], *counts, age(obj, now)]


SCALES = Columns(
    (Column("Name"), Column("Desired", "integer"), Column("Available", "integer"), AGE), _scale
)


_MEASURED = ("cpu", "memory")
_METRICS = (
    NAME,
    *(Column(name, format="quantity") for name in _MEASURED),
    Column("Window", format="duration"),
)


def _node_usage(obj: Object, now: float) -> Cells:
    return _usage(obj, [obj["usage"]])


def _pod_usage(obj: Object, now: float) -> Cells:
    return _usage(obj, [container["usage"] for container in obj["containers"]])


def _usage(obj: Object, usages: Iterable[dict[str, str]]) -> Cells:
    usages = list(usages)
    cpu = sum(quantities.parse(usage["cpu"]).nanos for usage in usages)
    memory = sum(quantities.whole(usage["memory"]) for usage in usages)
    return [obj["metadata"]["name"], f"{cpu}n", f"{memory // 1024}Ki", obj["window"]]


NODE_METRICS = Columns(_METRICS, _node_usage)
POD_METRICS = Columns(_METRICS, _pod_usage)

"""Columns of ReplicationControllers and PodTemplates. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    AGE,
    NAME,
    Cells,
    Column,
    Columns,
    age,
    container_images,
    container_names,
    pairs,
    strings,
    wide,
)


def _controller(obj: Object, now: float) -> Cells:
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


def _template(obj: Object, now: float) -> Cells:
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
    _controller,
)
POD_TEMPLATES = Columns((NAME, *strings("Containers", "Images", "Pod Labels")), _template)

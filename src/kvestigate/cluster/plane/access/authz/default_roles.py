"""The roles and bindings that every cluster starts with: `admin`, `view`, `system:discovery`...

The table beside this file is written by `tools/roles.py`. Pure, once it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from typing import Any

import msgspec

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.kube import selectors

_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_ANNOTATIONS = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
_FIELDS = ("aggregationRule", "rules", "subjects", "roleRef")


def default_roles() -> Iterator[tuple[str, str, Object]]:
    """(plural, namespace, object)"""
    text = resources.files(__package__).joinpath("default_roles.json").read_bytes()
    table: list[dict[str, Any]] = msgspec.json.decode(text)
    cluster_roles = [entry for entry in table if entry["resource"] == "clusterroles"]
    for entry in table:
        labels = {**_LABELS, **entry.get("labels", {})}
        meta = {"name": entry["name"], "labels": labels, "annotations": dict(_ANNOTATIONS)}
        obj: Object = {"metadata": meta, **{key: entry[key] for key in _FIELDS if key in entry}}
        if "aggregationRule" in entry:
            obj["rules"] = list(_aggregated(entry, cluster_roles))
        yield entry["resource"], entry.get("namespace", ""), obj


def _aggregated(role: dict[str, Any], cluster_roles: list[dict[str, Any]]) -> Iterator[Object]:
    """The rules of the cluster roles that an aggregated role selects."""
    label_selectors = [
        selectors.from_label_selector(label_selector)
        for label_selector in role["aggregationRule"]["clusterRoleSelectors"]
    ]
    for other in cluster_roles:
        if any(selector.matches(other.get("labels", {})) for selector in label_selectors):
            nested = _aggregated(other, cluster_roles) if "aggregationRule" in other else ()
            yield from (*other.get("rules", ()), *nested)

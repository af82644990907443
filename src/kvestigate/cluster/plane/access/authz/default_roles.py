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
    by_name = {each["name"]: each for each in table if each["resource"] == "clusterroles"}
    for each in table:
        labels = {**_LABELS, **each.get("labels", {})}
        meta = {"name": each["name"], "labels": labels, "annotations": dict(_ANNOTATIONS)}
        obj: Object = {"metadata": meta, **{key: each[key] for key in _FIELDS if key in each}}
        if "aggregationRule" in each:
            obj["rules"] = list(_aggregated(each, by_name))
        yield each["resource"], each.get("namespace", ""), obj


def _aggregated(role: dict[str, Any], by_name: dict[str, dict[str, Any]]) -> Iterator[Object]:
    """The rules that the roles chosen by an aggregating one add up to."""
    chosen = [
        selectors.from_label_selector(each)
        for each in role["aggregationRule"]["clusterRoleSelectors"]
    ]
    for other in by_name.values():
        if any(selector.matches(other.get("labels", {})) for selector in chosen):
            nested = _aggregated(other, by_name) if "aggregationRule" in other else ()
            yield from (*other.get("rules", ()), *nested)

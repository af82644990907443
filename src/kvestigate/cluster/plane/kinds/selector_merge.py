"""`matchLabelKeys`: a new pod's own labels become part of its selectors. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Object = dict[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def merge_label_keys(spec: Object, labels: dict[str, str]) -> None:
    if "affinity" not in spec and "topologySpreadConstraints" not in spec:
        return
    for term in (*_affinity_terms(spec), *(spec.get("topologySpreadConstraints") or ())):
        selector = term.get("labelSelector")
        if selector is None:
            continue
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            added = [
                {"key": key, "operator": operator, "values": [labels[key]]}
                for key in term.get(field) or ()
                if key in labels
            ]
            if added:
                selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]


def _affinity_terms(spec: Object) -> Iterator[Object]:
    affinity = spec.get("affinity") or {}
    for name in ("podAffinity", "podAntiAffinity"):
        of = affinity.get(name) or {}
        yield from of.get(_REQUIRED) or ()
        for weighted in of.get(_PREFERRED) or ():
            yield weighted["podAffinityTerm"]

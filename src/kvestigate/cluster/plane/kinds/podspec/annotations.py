"""Annotations that mean something to pods. Pure."""

from __future__ import annotations

import re
from typing import Any

from kvestigate.kube import causes
from kvestigate.kube.causes import Causes

Object = dict[str, Any]

MIRROR = "kubernetes.io/config.mirror"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

# The server wants the one spelling that a number has: no plus, no leading zeros.
_cost = re.compile("0|-?[1-9][0-9]*").fullmatch


def validate_pod_annotations(path: str, annotations: dict[str, str], spec: Object) -> Causes:
    if MIRROR in annotations and not spec.get("nodeName"):
        why = "must set spec.nodeName if mirror pod annotation is set"
        yield causes.invalid(f"{path}[{MIRROR}]", annotations[MIRROR], why)
    cost = annotations.get(DELETION_COST)
    if cost is not None and not (_cost(cost) and -(2**31) <= int(cost) < 2**31):
        yield causes.invalid(f"{path}[{DELETION_COST}]", cost, "must be a 32bit integer")

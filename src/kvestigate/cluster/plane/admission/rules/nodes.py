"""A new node takes no pods until it was seen to be ready."""

from __future__ import annotations

from kvestigate.cluster.plane.admission.interface import Write

_TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def taint_new_node(write: Write) -> None:
    if not write.creates:
        return
    spec = write.new.setdefault("spec", {})
    present = spec.get("taints") or []
    if not any(all(each.get(key) == _TAINT[key] for key in _TAINT) for each in present):
        spec["taints"] = [*present, dict(_TAINT)]

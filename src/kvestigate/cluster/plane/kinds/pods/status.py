"""The status of a pod, as nodes and the scheduler report it. Pure."""

from __future__ import annotations

from typing import Any

from kvestigate.cluster.plane.kinds import checks
from kvestigate.kube import causes
from kvestigate.kube.causes import Causes

Object = dict[str, Any]


def keep_known(new: Object, old: Object) -> None:
    """Keep status fields that the reporter left out or may not change."""
    status: Object = new.setdefault("status", {})
    before = old.get("status") or {}
    for field in ("qosClass", "observedGeneration"):
        if field in before:
            status.setdefault(field, before[field])
    _align_addresses(status)
    generations = {
        condition["type"]: condition.get("observedGeneration")
        for condition in before.get("conditions") or ()
    }
    for condition in status.get("conditions") or ():
        known = generations.get(condition["type"])
        if known:
            condition.setdefault("observedGeneration", known)


def _align_addresses(status: Object) -> None:
    """Make `podIP` and the first of `podIPs` equal."""
    addresses = status.get("podIPs") or []
    if not addresses and "podIP" in status:
        status["podIPs"] = [{"ip": status["podIP"]}]
    elif addresses:
        if status.get("podIP") and status["podIP"] != addresses[0]["ip"]:
            status["podIPs"] = [{"ip": status["podIP"]}]
        else:
            status["podIP"] = addresses[0]["ip"]


def validate_pod_status(new: Object, old: Object) -> Causes:
    status, before = new.get("status") or {}, old.get("status") or {}
    nominated = status.get("nominatedNodeName", "")
    if nominated and nominated != before.get("nominatedNodeName"):
        yield from checks.subdomain("status.nominatedNodeName", nominated)
        if old["spec"].get("nodeName"):
            why = "may not be set on pods that are already bound to a node"
            yield causes.forbidden("status.nominatedNodeName", why)
    yield from checks.immutable("status", status, before, "qosClass")
    if old["spec"].get("restartPolicy") != "Always":
        yield from _restarted(status, before, old["spec"])
    for field in ("podIPs", "hostIPs"):
        for index, address in enumerate(status.get(field) or ()):
            yield from checks.ip(f"status.{field}[{index}]", address.get("ip", ""))


def _restarted(status: Object, before: Object, spec: Object) -> Causes:
    """Refuse a terminated container that runs again although its pod never restarts it."""
    ended = {
        container["name"]: container["state"]["terminated"]
        for container in before.get("containerStatuses") or ()
        if (container.get("state") or {}).get("terminated")
    }
    for index, container in enumerate(status.get("containerStatuses") or ()):
        last = ended.get(container["name"])
        if last is None or (spec["restartPolicy"] == "OnFailure" and last["exitCode"]):
            continue
        if not (container.get("state") or {}).get("terminated"):
            why = "may not be transitioned to non-terminated state"
            yield causes.forbidden(f"status.containerStatuses[{index}].state", why)

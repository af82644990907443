"""The status of a pod, as nodes and the scheduler report it. Pure."""

from __future__ import annotations

from typing import Any

from kvestigate.cluster.plane.kinds import checks
from kvestigate.kube import causes
from kvestigate.kube.causes import Cause, Causes

Object = dict[str, Any]

_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")


def keep_known(new: Object, old: Object) -> None:
    """Keep status fields that the reporter left out or may not change."""
    status: Object = new.setdefault("status", {})
    before = old.get("status") or {}
    for field in ("qosClass", "observedGeneration"):
        if field in before:
            status.setdefault(field, before[field])
    _align_addresses(status)
    generations = {
        it["type"]: it.get("observedGeneration") for it in before.get("conditions") or ()
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


def validate_pod_status(new: Object, old: Object) -> list[Cause]:
    return list(_problems(new, old))


def _problems(new: Object, old: Object) -> Causes:
    status, before = new.get("status") or {}, old.get("status") or {}
    yield from _conditions("status.conditions", status.get("conditions") or [])
    nominated = status.get("nominatedNodeName", "")
    if nominated and nominated != before.get("nominatedNodeName"):
        yield from checks.subdomain("status.nominatedNodeName", nominated)
        if old["spec"].get("nodeName"):
            why = "may not be set on pods that are already bound to a node"
            yield causes.forbidden("status.nominatedNodeName", why)
    if status.get("observedGeneration", 0) < 0:
        why = "must be a non-negative integer"
        yield causes.invalid("status.observedGeneration", status["observedGeneration"], why)
    yield from checks.immutable(
        "status.qosClass", status.get("qosClass", ""), before.get("qosClass", "")
    )
    yield from _restarted(status, before, old["spec"])
    yield from _addresses("status.podIPs", status.get("podIPs") or [])
    hosts = status.get("hostIPs") or []
    if hosts and hosts[0].get("ip") != status.get("hostIP", ""):
        why = "must be equal to `hostIP`"
        yield causes.invalid("status.hostIPs[0].ip", hosts[0].get("ip", ""), why)
    yield from _addresses("status.hostIPs", hosts)


def _restarted(status: Object, before: Object, spec: Object) -> Causes:
    """Refuse a terminated container that runs again although its pod never restarts it."""
    if spec.get("restartPolicy") == "Always":
        return
    ended = {
        it["name"]: it["state"]["terminated"]
        for it in before.get("containerStatuses") or ()
        if (it.get("state") or {}).get("terminated")
    }
    for index, container in enumerate(status.get("containerStatuses") or ()):
        last = ended.get(container["name"])
        if last is None or (spec["restartPolicy"] == "OnFailure" and last["exitCode"]):
            continue
        if not (container.get("state") or {}).get("terminated"):
            why = "may not be transitioned to non-terminated state"
            yield causes.forbidden(f"status.containerStatuses[{index}].state", why)


def _conditions(path: str, conditions: list[Object]) -> Causes:
    for index, condition in enumerate(conditions):
        at, seen = f"{path}[{index}]", condition.get("observedGeneration", 0)
        if seen < 0:
            why = "must be a non-negative integer"
            yield causes.invalid(f"{at}.observedGeneration", seen, why)
        if condition["type"] not in _SYSTEM_CONDITIONS:
            # The capital is the server's.
            yield from checks.label_key(f"{at}.Type", condition["type"])


def _addresses(path: str, addresses: list[Object]) -> Causes:
    families = set()
    for index, each in enumerate(addresses):
        text = each.get("ip", "")
        yield from checks.ip(f"{path}[{index}]", text)
        families.add(getattr(checks.address(text), "version", 0))
    if len(families) < len(addresses):
        why = "may specify no more than one IP for each IP family"
        yield causes.invalid(path, [{"IP": each.get("ip", "")} for each in addresses], why)

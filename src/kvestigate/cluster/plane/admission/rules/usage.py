"""What one object takes from the quotas of its namespace. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kvestigate.cluster.plane.admission.rules.amounts import Amounts, amounts, of_pod
from kvestigate.cluster.plane.kinds.pods.qos import BEST_EFFORT, qos_class
from kvestigate.cluster.plane.kinds.resource_names import is_extended, is_huge_page
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.kube.quantities import Quantity
from kvestigate.kube.resources import Resource

_BARE = ("cpu", "memory", "ephemeral-storage")
"""Also counted without `requests.` in front."""
_COUNTED = ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")
"""Also counted without `count/` in front."""
_PER_CLASS = ".storageclass.storage.k8s.io/"
_ONE = Quantity(10**9)


def usage(resource: Resource, obj: Object) -> Amounts:
    """What the object uses, by the resource names of quotas."""
    used: Amounts = {f"count/{resource.qualified}": _ONE}
    if not resource.group:
        match resource.plural:
            case "pods":
                used |= _pod(obj["spec"])
            case "services":
                used |= _service(obj["spec"])
            case "persistentvolumeclaims":
                used |= _claim(obj["spec"])
            case plural if plural in _COUNTED:
                used[plural] = _ONE
    return used


def _pod(spec: Object) -> Amounts:
    used: Amounts = {"pods": _ONE}
    for name, amount in of_pod(spec, "requests").items():
        if name in _BARE or is_huge_page(name):
            used[name] = used[f"requests.{name}"] = amount
        elif is_extended(name):
            used[f"requests.{name}"] = amount
    for name, amount in of_pod(spec, "limits").items():
        if name in _BARE:
            used[f"limits.{name}"] = amount
    return used


def _service(spec: Object) -> Amounts:
    used: Amounts = {"services": _ONE}
    type_, ports = spec.get("type"), spec.get("ports") or ()
    if type_ == "NodePort":
        used["services.nodeports"] = _ONE * len(ports)
    elif type_ == "LoadBalancer":
        used["services.loadbalancers"] = _ONE
        allocates = spec.get("allocateLoadBalancerNodePorts", True)
        opened = ports if allocates else [port for port in ports if port.get("nodePort")]
        used["services.nodeports"] = _ONE * len(opened)
    return used


def _claim(spec: Object) -> Amounts:
    used: Amounts = {"persistentvolumeclaims": _ONE}
    storage = amounts(spec.get("resources"), "requests").get("storage")
    if storage is not None:
        used["requests.storage"] = storage
    if name := spec.get("storageClassName"):
        used |= {f"{name}{_PER_CLASS}{key}": amount for key, amount in used.items()}
    return used


def unspecified(spec: Object, hard: Iterable[str]) -> Mapping[str, list[str]]:
    """Names of containers without a request or limit that the quota needs, by resource."""
    whole = spec.get("resources")
    missing: dict[str, list[str]] = {}
    for name in sorted(hard):
        kind, resource = _required(name)
        if not kind or resource in amounts(whole, kind):
            continue
        containers = (*(spec["containers"] or ()), *(spec.get("initContainers") or ()))
        silent = [
            each["name"]
            for each in containers
            if resource not in amounts(each.get("resources"), kind)
        ]
        if silent:
            missing[name] = sorted(silent)
    return missing


def _required(name: str) -> tuple[str, str]:
    """(`requests` or `limits`, resource) of a name that containers must speak about."""
    if name in ("cpu", "memory"):
        return "requests", name
    kind, _, resource = name.partition(".")
    if kind in ("requests", "limits") and resource in ("cpu", "memory"):
        return kind, resource
    return "", ""


def in_scope(resource: Resource, obj: Object, spec: Object) -> bool:
    """Whether a quota with this spec is about the object."""
    terms = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    terms += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    if resource.group or resource.plural not in ("pods", "persistentvolumeclaims"):
        return not terms
    return all(_fits(resource.plural, obj["spec"], term) for term in terms)


def _fits(plural: str, spec: Object, term: Object) -> bool:
    scope: str = term["scopeName"]
    if scope == "VolumeAttributesClass":
        named = spec.get("volumeAttributesClassName") or ""
        return plural == "persistentvolumeclaims" and _among(named, term)
    if plural != "pods":
        return False
    match scope:
        case "Terminating" | "NotTerminating":
            return ("activeDeadlineSeconds" in spec) == (scope == "Terminating")
        case "BestEffort" | "NotBestEffort":
            return (qos_class(spec) == BEST_EFFORT) == (scope == "BestEffort")
        case "PriorityClass":
            return _among(spec.get("priorityClassName") or "", term)
        case "CrossNamespacePodAffinity":
            return _reaches_out(spec.get("affinity") or {})
        case _:
            return False


def _among(value: str, term: Object) -> bool:
    match term.get("operator"):
        case "In":
            return value in (term.get("values") or ())
        case "NotIn":
            return value not in (term.get("values") or ())
        case "DoesNotExist":
            return not value
        case _:
            return bool(value)


def _reaches_out(affinity: Object) -> bool:
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        required = terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        preferred = terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        for term in (*required, *(each["podAffinityTerm"] for each in preferred)):
            if term.get("namespaces") or term.get("namespaceSelector") is not None:
                return True
    return False

"""What makes a Service valid, and what may change in one. Pure."""

from __future__ import annotations

import ipaddress
from typing import Any

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.network.service_addresses import (
    NONE,
    WITH_NODE_PORTS,
    is_headless,
    needs_health_check,
)
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

Object = dict[str, Any]

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
AFFINITIES = ("ClientIP", "None")
_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_TRAFFIC = {
    "internalTrafficPolicy": checks.choice_of("Cluster", "Local"),
    "trafficDistribution": checks.choice_of("PreferClose", "PreferSameZone", "PreferSameNode"),
}
_AFFINITY_SECONDS_MAX = 86400
_ONLY_BALANCERS = "may only be used when `type` is 'LoadBalancer'"
_ONCE = "may not change once set"
_HINTS, _TOPOLOGY = (
    "service.kubernetes.io/topology-aware-hints",
    "service.kubernetes.io/topology-mode",
)


def externally_accessible(spec: Object) -> bool:
    if spec["type"] in WITH_NODE_PORTS:
        return True
    return bool(spec["type"] == "ClusterIP" and spec.get("externalIPs"))


def validate_service(obj: Object) -> Causes:
    spec = obj["spec"]
    annotations = obj["metadata"].get("annotations") or {}
    hints, mode = annotations.get(_HINTS), annotations.get(_TOPOLOGY)
    if hints is not None and mode is not None and hints != mode:
        why = f"must match annotations[{_HINTS}] when both are specified"
        yield causes.invalid(f"metadata.annotations[{_TOPOLOGY}]", mode, why)
    ports = spec.get("ports") or []
    if not ports and not is_headless(spec) and spec["type"] != "ExternalName":
        yield causes.required("spec.ports")
    yield from _type(spec)
    yield from _ports(ports)
    yield from checks.labels("spec.selector", spec.get("selector") or {})
    yield from _affinity(spec)
    yield from validate_addresses(spec)
    for index, ip in enumerate(spec.get("externalIPs") or ()):
        yield from validate_endpoint_ip(f"spec.externalIPs[{index}]", ip)
    yield from checks.choice("spec.type", spec["type"], TYPES)
    yield from _node_ports(spec, ports)
    yield from _balancer(spec)
    yield from _traffic(spec)


def _type(spec: Object) -> Causes:
    if spec["type"] in WITH_NODE_PORTS:
        if is_headless(spec):
            why = f"may not be set to 'None' for {spec['type']} services"
            yield causes.invalid("spec.clusterIPs[0]", NONE, why)
    elif spec["type"] == "ExternalName":
        for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if spec.get(field):
                yield causes.forbidden(f"spec.{field}", "may not be set for ExternalName services")
        name = spec.get("externalName", "").removesuffix(".")
        yield from checks.needed("spec.externalName", name, names.subdomain_problems)


def _ports(ports: list[Object]) -> Causes:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        at, name = f"spec.ports[{index}]", port.get("name", "")
        if not name:
            if len(ports) > 1:
                yield causes.required(f"{at}.name")
        else:
            yield from checks.label(f"{at}.name", name)
            if name in seen:
                yield causes.duplicate(f"{at}.name", name)
            seen.add(name)
        yield from checks.port_number(f"{at}.port", port["port"])
        yield from checks.choice(f"{at}.protocol", port["protocol"], ("SCTP", "TCP", "UDP"))
        yield from checks.port(f"{at}.targetPort", port["targetPort"])
        if "appProtocol" in port:
            yield from checks.label_key(f"{at}.appProtocol", port["appProtocol"])


def _affinity(spec: Object) -> Causes:
    if spec["sessionAffinity"] not in AFFINITIES:
        yield causes.unsupported("spec.sessionAffinity", spec["sessionAffinity"], AFFINITIES)
    elif spec["sessionAffinity"] == "ClientIP":
        seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
        if not 0 < seconds <= _AFFINITY_SECONDS_MAX:
            why = f"must be greater than 0 and less than {_AFFINITY_SECONDS_MAX}"
            path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            yield causes.invalid(path, seconds, why)


def validate_addresses(spec: Object) -> Causes:
    """Check clusterIPs, ipFamilies and ipFamilyPolicy, alone and against each other."""
    if spec["type"] == "ExternalName":
        return
    given, first = spec.get("clusterIPs") or [], spec.get("clusterIP", "")
    path = "spec.clusterIPs"
    if first and not given:
        yield causes.required(path)
    elif first and given[0] != first:
        yield causes.invalid(path, given, "first value must match `clusterIP`")
    elif given and not first:
        yield causes.invalid(path, given, "must be empty when `clusterIP` is not specified")
    yield from _families(spec)
    wrong = list(_addresses(path, given))
    if len(given) > 2:
        wrong.append(causes.invalid(path, given, "may only hold up to 2 values"))
    yield from wrong
    if wrong or is_headless(spec):
        return
    versions = [getattr(checks.address(ip), "version", 0) for ip in given]
    if len(versions) > 1 and len(set(versions)) == 1:
        yield causes.invalid(path, given, "may specify no more than one IP for each IP family")
    for index, (version, family) in enumerate(
        zip(versions, spec.get("ipFamilies") or (), strict=False)
    ):
        if family in _FAMILIES and family != f"IPv{version}":
            why = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            yield causes.invalid(f"{path}[{index}]", given[index], why)


def _families(spec: Object) -> Causes:
    seen: set[str] = set()
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        at = f"spec.ipFamilies[{index}]"
        yield from checks.choice(at, family, _FAMILIES)
        if family in seen:
            yield causes.duplicate(at, family)
        seen.add(family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _FAMILY_POLICIES:
        yield causes.unsupported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES)


def _addresses(path: str, given: list[str]) -> Causes:
    for index, ip in enumerate(given):
        if not index and ip == NONE:
            if len(given) > 1:
                yield causes.invalid(path, given, "'None' must be the first and only value")
        else:
            yield from checks.ip(f"{path}[{index}]", ip)


def validate_endpoint_ip(path: str, text: str) -> Causes:
    """An address that traffic can be sent to from outside."""
    ip = checks.address(text)
    if ip is None:
        yield from checks.ip(path, text)
        return
    if ip.is_unspecified:
        yield causes.invalid(path, text, f"may not be unspecified ({text})")
    if ip.is_loopback:
        why = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
        yield causes.invalid(path, text, why)
    if ip.is_link_local:
        why = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
        yield causes.invalid(path, text, why)
    if ip.is_multicast and (ip in _LOCAL_MULTICAST or ip in _LOCAL_MULTICAST_6):
        why = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        yield causes.invalid(path, text, why)


_LOCAL_MULTICAST = ipaddress.IPv4Network("224.0.0.0/24")
_LOCAL_MULTICAST_6 = ipaddress.IPv6Network("ff02::/16")


def _node_ports(spec: Object, ports: list[Object]) -> Causes:
    seen: set[tuple[str, int]] = set()
    if spec["type"] == "ClusterIP":
        for index, port in enumerate(ports):
            if "nodePort" in port:
                why = "may not be used when `type` is 'ClusterIP'"
                yield causes.forbidden(f"spec.ports[{index}].nodePort", why)
    for index, port in enumerate(ports):
        if "nodePort" in port:
            key = (port["protocol"], port["nodePort"])
            if key in seen:
                yield causes.duplicate(f"spec.ports[{index}].nodePort", port["nodePort"])
            seen.add(key)
    numbers: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        key = (port["protocol"], port["port"])
        if key in numbers:
            yield causes.duplicate(f"spec.ports[{index}]", port)
        numbers.add(key)


def _balancer(spec: Object) -> Causes:
    balancer = spec["type"] == "LoadBalancer"
    ranges = spec.get("loadBalancerSourceRanges") or []
    if ranges:
        # The capital is the server's.
        path = "spec.LoadBalancerSourceRanges"
        if not balancer:
            yield causes.forbidden(path, _ONLY_BALANCERS)
        for index, value in enumerate(ranges):
            yield from checks.cidr(f"{path}[{index}]", value.strip())
    if "allocateLoadBalancerNodePorts" in spec and not balancer:
        yield causes.forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCERS)
    if "loadBalancerClass" in spec and not balancer:
        yield causes.forbidden("spec.loadBalancerClass", _ONLY_BALANCERS)
    elif "loadBalancerClass" in spec:
        yield from checks.label_key("spec.loadBalancerClass", spec["loadBalancerClass"])


def _traffic(spec: Object) -> Causes:
    policy, path = spec.get("externalTrafficPolicy"), "spec.externalTrafficPolicy"
    if not externally_accessible(spec):
        if policy:
            yield causes.invalid(path, policy, "may only be set for externally-accessible services")
    elif policy not in ("Cluster", "Local"):
        yield causes.unsupported(path, policy, ["Cluster", "Local"])
    number, path = spec.get("healthCheckNodePort", 0), "spec.healthCheckNodePort"
    if not needs_health_check(spec):
        if number:
            why = (
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is "
                "'Local'"
            )
            yield causes.invalid(path, number, why)
    else:
        yield from checks.port_number(path, number)
    yield from checks.fields("spec", spec, _TRAFFIC)


def validate_service_update(spec: Object, before: Object) -> Causes:
    if "ExternalName" not in (spec["type"], before["type"]):
        if not (is_headless(spec) and is_headless(before)):
            yield from _kept_addresses(spec, before)
        if not is_headless(spec) and not is_headless(before):
            families, was = spec.get("ipFamilies") or [], before.get("ipFamilies") or []
            if families[:1] != was[:1]:
                yield causes.invalid("spec.ipFamilies[0]", families, _ONCE)
    if spec["type"] == before["type"] == "LoadBalancer":
        value = spec.get("loadBalancerClass")
        if value != before.get("loadBalancerClass"):
            yield causes.invalid("spec.loadBalancerClass", value, _ONCE)
    number = spec.get("healthCheckNodePort")
    checked = needs_health_check(spec) and needs_health_check(before)
    if checked and number != before.get("healthCheckNodePort"):
        yield causes.forbidden("spec.healthCheckNodePort", checks.IMMUTABLE)


def _kept_addresses(spec: Object, before: Object) -> Causes:
    given, was = spec.get("clusterIPs") or [], before.get("clusterIPs") or []
    if was and not given:
        why = "primary clusterIP can not be unset"
        yield causes.invalid("spec.clusterIPs[0]", given, why)
        return
    for index, (new, old) in enumerate(zip(given, was, strict=False)):
        if new != old and (not index or len(given) == len(was)):
            yield causes.invalid(f"spec.clusterIPs[{index}]", given, _ONCE)


def validate_balancer_status(obj: Object) -> Causes:
    ingress = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    path = "status.loadBalancer.ingress"
    if ingress and obj["spec"]["type"] != "LoadBalancer":
        why = "may only be used when `spec.type` is 'LoadBalancer'"
        return [causes.forbidden(path, why)]
    return checks.items(_ingress)(path, ingress)


def _ingress(path: str, ingress: Object) -> Causes:
    ip, mode, host = ingress.get("ip", ""), ingress.get("ipMode"), ingress.get("hostname", "")
    if ip:
        yield from checks.ip(f"{path}.ip", ip)
        if mode not in ("Proxy", "VIP"):
            yield causes.unsupported(f"{path}.ipMode", mode, ["Proxy", "VIP"])
    elif mode is not None:
        yield causes.forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set")
    if host:
        yield from checks.subdomain(f"{path}.hostname", host)
        if checks.address(host) is not None:
            why = "must be a DNS name, not an IP address"
            yield causes.invalid(f"{path}.hostname", host, why)


def warn_of_service(obj: Object) -> list[str]:
    spec = obj["spec"]
    warnings = []
    if _HINTS in (obj["metadata"].get("annotations") or ()):
        warnings.append(f"annotation {_HINTS} is deprecated, please use {_TOPOLOGY} instead")
    headless = spec["type"] == "ClusterIP" and spec.get("clusterIP") == NONE
    external = spec.get("externalIPs")
    if headless:
        for field in ("loadBalancerIP", "externalIPs"):
            if spec.get(field):
                warnings.append(f"spec.{field} is ignored for headless services")
        if spec["sessionAffinity"] != "None":
            warnings.append("spec.SessionAffinity is ignored for headless services")
    elif external and spec["type"] != "ExternalName":
        why = "is deprecated and may no longer be implemented in some clusters"
        warnings.append(f"spec.externalIPs {why}")
    if spec["type"] == "ExternalName" and external:
        warnings.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if spec["type"] != "ExternalName" and spec.get("externalName"):
        warnings.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        warnings.append(
            'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'
        )
    return warnings

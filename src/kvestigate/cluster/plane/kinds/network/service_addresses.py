"""Cluster IPs and node ports: taken from what the state shows to be free. Pure.

A plane's writes are made one after another on its newest state, so that looking is enough and
no allocation has to be remembered beside the services themselves.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from random import Random
from typing import Any

import msgspec

from kvestigate.cluster.plane.kinds.checks import address
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.errors import InternalError
from kvestigate.kube import causes
from kvestigate.kube.causes import Cause

Object = dict[str, Any]

SERVICES = ("", "services")
ADDRESSES = ipaddress.IPv4Network("10.0.0.0/16")
NODE_PORTS = range(30000, 32768)
NONE = "None"
WITH_NODE_PORTS = ("NodePort", "LoadBalancer")

# The order of `ServiceKind.selectable`, and with it of the fields kept beside stored services.
CLUSTER_IP, TYPE = 0, 1


def needs_address(spec: Object) -> bool:
    return bool(spec["type"] != "ExternalName")


def is_headless(spec: Object) -> bool:
    return spec.get("clusterIPs") == [NONE]


def needs_health_check(spec: Object) -> bool:
    return spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def allocates_node_ports(spec: Object) -> bool:
    if spec["type"] == "LoadBalancer":
        return bool(spec.get("allocateLoadBalancerNodePorts", True))
    return bool(spec["type"] == "NodePort")


def choose_families(spec: Object, before: Object | None) -> list[Cause]:
    """Set ipFamilyPolicy and ipFamilies. The cluster has a single IP family."""
    if not needs_address(spec):
        return []
    selectorless = spec.get("clusterIP") == NONE and not spec.get("selector")
    if "ipFamilyPolicy" not in spec:
        kept = (before or {}).get("ipFamilyPolicy")
        spec["ipFamilyPolicy"] = kept or ("RequireDualStack" if selectorless else "SingleStack")
    if selectorless:
        families = spec.get("ipFamilies") or ["IPv4"]
        if len(families) < 2 and spec["ipFamilyPolicy"] != "SingleStack":
            families = [*families, "IPv6" if families[0] == "IPv4" else "IPv4"]
        spec["ipFamilies"] = families
        return []
    problems = list(_impossible(spec))
    if not problems and not spec.get("ipFamilies"):
        spec["ipFamilies"] = ["IPv4"]
    return problems


def _impossible(spec: Object) -> Iterable[Cause]:
    addresses, families = spec.get("clusterIPs") or [], spec.get("ipFamilies") or []
    policy = spec["ipFamilyPolicy"]
    if policy == "SingleStack":
        for name, given in (("cluster IPs", addresses), ("IP families", families)):
            if len(given) == 2:
                why = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {name}"
                yield causes.invalid("spec.ipFamilyPolicy", policy, f"{why} are specified")
    for index, text in enumerate(addresses[len(families) :], len(families)):
        known = address(text)
        if known is not None and known.version == 6:
            why = "IPv6 is not configured on this cluster"
            yield causes.invalid(f"spec.clusterIPs[{index}]", addresses, why)
    if policy == "RequireDualStack":
        why = "this cluster is not configured for dual-stack services"
        yield causes.invalid("spec.ipFamilyPolicy", policy, why)
    for index, family in enumerate(families):
        if family != "IPv4":
            why = "not configured on this cluster"
            yield causes.invalid(f"spec.ipFamilies[{index}]", family, why)


def take_address(spec: Object, state: PlaneState, uid: str) -> list[Cause]:
    """Give a service its cluster IP, or reserve the one it asks for."""
    wanted = (spec.get("clusterIPs") or [""])[0]
    if wanted == NONE or not needs_address(spec):
        return []
    taken = {item.fields[CLUSTER_IP] for item in state.collection(SERVICES).items()}
    if not wanted:
        spec["clusterIP"] = _free_address(taken, uid)
        spec["clusterIPs"] = [spec["clusterIP"]]
        return []
    if address(wanted) not in ADDRESSES:
        why = "the provided network does not match the current range"
    elif _edge(wanted):
        where = f"The range of valid IPs is {ADDRESSES}"
        why = f"the provided IP ({wanted}) is not in the valid range. {where}"
    elif wanted in taken:
        why = "provided IP is already allocated"
    else:
        return []
    given = spec["clusterIPs"]
    return [causes.invalid("spec.clusterIPs", given, f"failed to allocate IP {wanted}: {why}")]


def _edge(text: str) -> bool:
    return text in (str(ADDRESSES.network_address), str(ADDRESSES.broadcast_address))


def _free_address(taken: set[str], uid: str) -> str:
    size = ADDRESSES.num_addresses - 2
    start = Random(uid).randrange(size)
    for step in range(size):
        candidate = str(ADDRESSES[1 + (start + step) % size])
        if candidate not in taken:
            return candidate
    raise InternalError("failed to allocate a serviceIP: range is full")


def take_node_ports(
    spec: Object, state: PlaneState, uid: str, before: Object | None
) -> list[Cause]:
    """Give node ports to a service that needs them, or reserve those it asks for."""
    problems: list[Cause] = []
    own = set(node_ports(before)) if before else set()
    if spec["type"] in WITH_NODE_PORTS or needs_health_check(spec):
        ports = _Ports(state, uid, own)
        if spec["type"] in WITH_NODE_PORTS:
            problems += ports.assign(spec)
        if not problems and needs_health_check(spec):
            ports.assign_health_check(spec)
    return problems


def node_ports(spec: Object) -> list[int]:
    ports = [port["nodePort"] for port in spec.get("ports") or () if "nodePort" in port]
    if "healthCheckNodePort" in spec:
        ports.append(spec["healthCheckNodePort"])
    return ports


class _Ports:
    """The node ports of a plane while one service takes some."""

    def __init__(self, state: PlaneState, uid: str, own: set[int]) -> None:
        self._own = own
        self._start = Random(f"{uid}/ports").randrange(len(NODE_PORTS))
        self._taken: set[int] = set()
        for item in state.collection(SERVICES).items():
            if item.fields[TYPE] in WITH_NODE_PORTS and item.uid != uid:
                self._taken.update(node_ports(msgspec.json.decode(item.data)["spec"]))

    def assign(self, spec: Object) -> list[Cause]:
        by_port: dict[int, int] = {}
        requested = {
            port["port"]: port["nodePort"] for port in spec.get("ports") or () if "nodePort" in port
        }
        for index, port in enumerate(spec.get("ports") or ()):
            if "nodePort" not in port and not allocates_node_ports(spec):
                continue
            number = (
                port.get("nodePort") or by_port.get(port["port"]) or requested.get(port["port"])
            )
            if number is None:
                number = self._next()
            elif number not in by_port.values() and (why := self._refusal(number)):
                return [causes.invalid(f"spec.ports[{index}].nodePort", number, why)]
            self._taken.add(number)
            port["nodePort"] = by_port[port["port"]] = number
        return []

    def assign_health_check(self, spec: Object) -> None:
        wanted = spec.get("healthCheckNodePort")
        if wanted is None:
            spec["healthCheckNodePort"] = self._next()
        elif why := self._refusal(wanted):
            raise InternalError(
                "Internal error occurred: failed to allocate requested HealthCheck NodePort "
                f"{wanted}: {why}"
            )

    def _refusal(self, number: int) -> str:
        if number in self._own:
            return ""
        if number not in NODE_PORTS:
            valid = f"{NODE_PORTS[0]}-{NODE_PORTS[-1]}"
            return f"provided port is not in the valid range. The range of valid ports is {valid}"
        return "provided port is already allocated" if number in self._taken else ""

    def _next(self) -> int:
        for step in range(len(NODE_PORTS)):
            number = NODE_PORTS[(self._start + step) % len(NODE_PORTS)]
            if number not in self._taken:
                self._taken.add(number)
                return number
        raise InternalError("failed to allocate a nodePort: range is full")

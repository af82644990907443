"""NetworkPolicies. Pure."""

from __future__ import annotations

import ipaddress

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes
from kvestigate.kube.causes import Causes

PROTOCOLS = ("TCP", "UDP", "SCTP")
TYPES = ("Ingress", "Egress")
_DIRECTIONS = (("ingress", "from"), ("egress", "to"))


class NetworkPolicyKind(Kind):
    counts_generations = True

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        for direction, _ in _DIRECTIONS:
            for rule in spec.get(direction) or ():
                for port in rule.get("ports") or ():
                    port.setdefault("protocol", "TCP")
        if not spec.get("policyTypes"):
            spec["policyTypes"] = list(TYPES if spec.get("egress") else TYPES[:1])

    def validate(self, obj: Object, scene: Scene) -> Causes:
        spec = obj["spec"]
        yield from checks.label_selector("spec.podSelector", spec["podSelector"])
        for direction, peers in _DIRECTIONS:
            for index, rule in enumerate(spec.get(direction) or ()):
                path = f"spec.{direction}[{index}]"
                for position, port in enumerate(rule.get("ports") or ()):
                    yield from _port(f"{path}.ports[{position}]", port)
                for position, peer in enumerate(rule.get(peers) or ()):
                    yield from _peer(f"{path}.{peers}[{position}]", peer)
        types = spec["policyTypes"]
        if len(types) > len(TYPES):
            why = "may not specify more than two policyTypes"
            yield causes.invalid("spec.policyTypes", types, why)
            return
        for index, type_ in enumerate(types):
            yield from checks.choice(f"spec.policyTypes[{index}]", type_, TYPES)


def _port(path: str, entry: Object) -> Causes:
    port, end = entry.get("port"), entry.get("endPort")
    yield from checks.choice(f"{path}.protocol", entry["protocol"], PROTOCOLS)
    if isinstance(port, int):
        yield from checks.port_number(f"{path}.port", port)
        if end is not None:
            if end < port:
                why = "must be greater than or equal to `port`"
                yield causes.invalid(f"{path}.endPort", port, why)
            yield from checks.port_number(f"{path}.endPort", end)
        return
    if end is not None:
        how = "not specified" if port is None else "non-numeric"
        why = f"may not be specified when `port` is {how}"
        yield causes.invalid(f"{path}.endPort", end, why)
    if port is not None:
        yield from checks.port(f"{path}.port", port)


def _peer(path: str, peer: Object) -> Causes:
    for name in ("podSelector", "namespaceSelector"):
        yield from checks.label_selector(f"{path}.{name}", peer.get(name))
    if "ipBlock" in peer:
        yield from _block(f"{path}.ipBlock", peer["ipBlock"])
    if not peer:
        yield causes.required(path, "must specify a peer")
    elif len(peer) > 1 and "ipBlock" in peer:
        yield causes.forbidden(path, "may not specify both ipBlock and another peer")


def _block(path: str, block: Object) -> Causes:
    if not block.get("cidr"):
        yield causes.required(f"{path}.cidr")
        return
    yield from checks.cidr(f"{path}.cidr", block["cidr"])
    outer = checks.network(block["cidr"])
    for index, text in enumerate(block.get("except") or () if outer else ()):
        at = f"{path}.except[{index}]"
        yield from checks.cidr(at, text)
        inner = checks.network(text)
        if outer and inner and not _strictly_within(inner, outer):
            yield causes.invalid(at, text, "must be a strict subset of `cidr`")


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _strictly_within(inner: Network, outer: Network) -> bool:
    same_family = inner.version == outer.version
    return same_family and inner.network_address in outer and inner.prefixlen > outer.prefixlen

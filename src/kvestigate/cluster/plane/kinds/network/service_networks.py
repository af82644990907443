"""The networks and addresses that Services get: ServiceCIDRs and IPAddresses. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes
from kvestigate.kube.causes import Causes

_ONE_EACH = (
    "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
)


class IPAddressKind(Kind):
    def name_problems(self, name: str) -> list[str]:
        problems, address = checks.ip_problems(name), checks.address(name)
        if problems:
            return problems
        return [] if str(address) == name else [f'must be in canonical form ("{address}")']

    def validate(self, obj: Object, scene: Scene) -> Causes:
        parent = obj["spec"].get("parentRef")
        path = "spec.parentRef"
        if parent is None:
            yield causes.required(path)
            return
        if parent.get("group"):
            yield from checks.subdomain(f"{path}.group", parent["group"])
        for name in ("resource", "name"):
            yield from checks.path_segment(f"{path}.{name}", parent.get(name, ""))
        if parent.get("namespace"):
            yield from checks.path_segment(f"{path}.namespace", parent["namespace"])

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        if "parentRef" in new["spec"]:
            yield from checks.immutable("spec", new["spec"], old["spec"], "parentRef")


class ServiceCIDRKind(Kind):
    def validate(self, obj: Object, scene: Scene) -> Causes:
        return _networks(obj["spec"].get("cidrs") or [])

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        return _changes(new["spec"].get("cidrs") or [], old["spec"].get("cidrs") or [])


def _networks(cidrs: list[str]) -> Causes:
    path = "spec.cidrs"
    if not cidrs:
        yield causes.required(path, "at least one CIDR required")
        return
    if len(cidrs) > 2:
        yield causes.invalid(path, cidrs, "may only hold up to 2 values")
        return
    for index, cidr in enumerate(cidrs):
        yield from checks.cidr(f"{path}[{index}]", cidr)
    families = {network.version for cidr in cidrs if (network := checks.network(cidr))}
    if len(cidrs) == 2 and len(families) == 1 and all(map(checks.network, cidrs)):
        yield causes.invalid(path, cidrs, _ONE_EACH)


def _changes(new: list[str], old: list[str]) -> Causes:
    """One family may be added to the other; nothing else may change."""
    if len(new) != len(old) and (len(old), len(new)) != (1, 2):
        yield causes.invalid("spec.cidrs", new, checks.IMMUTABLE)
        return
    for index, (cidr, before) in enumerate(zip(new, old, strict=False)):
        if cidr != before:
            yield causes.invalid(f"spec.cidrs[{index}]", cidr, checks.IMMUTABLE)
    if len(new) > len(old):
        yield from _networks(new)

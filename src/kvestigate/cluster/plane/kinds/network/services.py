"""Services: one address for many pods, and all that follows from their type."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds.network.service_addresses import (
    WITH_NODE_PORTS,
    choose_families,
    needs_address,
    needs_health_check,
    node_ports,
    take_address,
    take_node_ports,
)
from kvestigate.cluster.plane.kinds.network.service_rules import (
    externally_accessible,
    validate_addresses,
    validate_balancer_status,
    validate_service,
    validate_service_update,
    warn_of_service,
)
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

AFFINITY_SECONDS = 10800
_ADDRESSING = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


class ServiceKind(Kind):
    returns_deleted = True
    creates_on_update = True
    status_carries_metadata = True
    selectable = (
        ("spec.clusterIP", lambda obj: obj["spec"].get("clusterIP", "")),
        ("spec.type", lambda obj: obj["spec"].get("type", "")),
    )

    def name_problems(self, name: str) -> list[str]:
        return names.label_problems(name)

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        affinity = spec.setdefault("sessionAffinity", "None")
        if affinity == "None":
            spec.pop("sessionAffinityConfig", None)
        elif affinity == "ClientIP":
            config = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
            config.setdefault("timeoutSeconds", AFFINITY_SECONDS)
        type_ = spec.setdefault("type", "ClusterIP")
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            if port["targetPort"] in (0, ""):
                port["targetPort"] = port["port"]
        if externally_accessible(spec):
            spec.setdefault("externalTrafficPolicy", "Cluster")
        if type_ in ("ClusterIP", *WITH_NODE_PORTS):
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if type_ == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
            for ingress in obj["status"]["loadBalancer"].get("ingress") or ():
                if "ip" in ingress:
                    ingress.setdefault("ipMode", "VIP")

    def on_create(self, obj: Object, scene: Scene) -> None:
        spec = obj["spec"]
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        self._allocate(obj, None, scene)

    def on_update(self, new: Object, old: Object, scene: Scene) -> None:
        if scene.subresource == "status":
            return
        spec, before = new["spec"], old["spec"]
        _keep_allocated(spec, before)
        _align_addresses(spec, before)
        self._allocate(new, before, scene)
        _drop_what_fell_away(spec, before)
        if spec["type"] != "LoadBalancer":
            new["status"] = {**new.get("status", {}), "loadBalancer": {}}

    def recheck(self, new: Object, old: Object | None, scene: Scene) -> None:
        if scene.subresource != "status":
            self._allocate(new, None if old is None else old["spec"], scene)

    def _allocate(self, obj: Object, before: Object | None, scene: Scene) -> None:
        spec, uid = obj["spec"], obj["metadata"]["uid"]
        problems = list(validate_addresses(spec)) or choose_families(spec, before)
        had = before is not None and needs_address(before)
        if not problems and not had:
            problems = take_address(spec, scene.state, uid)
        if not problems:
            problems = take_node_ports(spec, scene.state, uid, before)
        if problems:
            raise causes.reject("Service", "", obj["metadata"].get("name", ""), problems)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return validate_service(obj)

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        return validate_service_update(new["spec"], old["spec"])

    def validate_status(self, new: Object, old: Object, scene: Scene) -> Causes:
        return validate_balancer_status(new)

    def warnings(self, obj: Object) -> list[str]:
        return warn_of_service(obj)


def _keep_allocated(spec: Object, before: Object) -> None:
    """Keep allocated addresses and ports that an update leaves out."""
    if needs_address(before) and needs_address(spec):
        if not spec.get("clusterIP") and "clusterIP" in before:
            spec["clusterIP"] = before["clusterIP"]
        if not spec.get("clusterIPs") and spec.get("clusterIP") == before.get("clusterIP"):
            spec["clusterIPs"] = before.get("clusterIPs") or []
    if before["type"] in WITH_NODE_PORTS and spec["type"] in WITH_NODE_PORTS:
        used = set(node_ports(spec))
        known = {
            (port["protocol"], port["port"]): port["nodePort"]
            for port in before.get("ports") or ()
            if "nodePort" in port
        }
        for port in spec.get("ports") or ():
            number = known.get((port["protocol"], port["port"]))
            if "nodePort" not in port and number and number not in used:
                port["nodePort"] = number
                used.add(number)
    if needs_health_check(before) and needs_health_check(spec):
        spec.setdefault("healthCheckNodePort", before.get("healthCheckNodePort", 0))


def _align_addresses(spec: Object, before: Object) -> None:
    """Update `clusterIPs` for a client that changed only `clusterIP`."""
    first, was = spec.get("clusterIP", ""), before.get("clusterIP", "")
    if first == was or spec.get("clusterIPs") != before.get("clusterIPs"):
        return
    if first:
        spec["clusterIPs"] = [first]
    else:
        spec.pop("clusterIPs", None)


def _drop_what_fell_away(spec: Object, before: Object) -> None:
    """Drop values that only the former type used, unless the client changed them."""
    if needs_address(before) and not needs_address(spec):
        for field in (*_ADDRESSING, "internalTrafficPolicy"):
            _drop(spec, before, field)
    if before["type"] in WITH_NODE_PORTS and spec["type"] not in WITH_NODE_PORTS:
        known = set(node_ports(before))
        if all(port.get("nodePort", 0) in {0, *known} for port in spec.get("ports") or ()):
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
    if needs_health_check(before) and not needs_health_check(spec):
        _drop(spec, before, "healthCheckNodePort")
    if before["type"] == "LoadBalancer" and spec["type"] != "LoadBalancer":
        _drop(spec, before, "allocateLoadBalancerNodePorts")
        _drop(spec, before, "loadBalancerClass")
    if externally_accessible(before) and not externally_accessible(spec):
        _drop(spec, before, "externalTrafficPolicy")


def _drop(spec: Object, before: Object, field: str) -> None:
    if field in spec and spec[field] == before.get(field):
        del spec[field]

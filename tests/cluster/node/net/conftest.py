"""Services and slices as an informer would tell of them."""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate.client.cache import Change, key_of
from kvestigate.cluster.node.net.services import OWNER, Services
from kvestigate.kube.views.network import EndpointSlice, Service


def service(name: str, *, namespace: str = "default", **spec: Any) -> Service:
    made = {"metadata": {"name": name, "namespace": namespace}, "spec": spec}
    return msgspec.convert(made, Service)


def slice_of(
    name: str, *endpoints: dict[str, Any], ports: list[dict[str, Any]] | None = None, part: int = 0
) -> EndpointSlice:
    made = {
        "metadata": {
            "name": f"{name}-{part}",
            "namespace": "default",
            "labels": {OWNER: name},
        },
        "endpoints": list(endpoints),
        "ports": ports if ports is not None else [{"name": "web", "port": 8080}],
    }
    return msgspec.convert(made, EndpointSlice)


def endpoint(ip: str, *, hostname: str = "", **conditions: bool) -> dict[str, Any]:
    return {"addresses": [ip], "hostname": hostname, "conditions": conditions}


WEB = [{"name": "web", "port": 80, "protocol": "TCP"}]


def services_of(*views: Service | EndpointSlice) -> Services:
    services = Services()
    for view in views:
        if isinstance(view, Service):
            services.on_service(Change("ADDED", key_of(view), None, view))
        else:
            services.on_slice(Change("ADDED", key_of(view), None, view))
    return services

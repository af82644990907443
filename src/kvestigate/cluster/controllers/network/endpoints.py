"""Endpoints: the addresses behind a Service, in the old form that some still read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kvestigate.client.cache import Key
from kvestigate.cluster.controllers import owners
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import ENDPOINTS
from kvestigate.cluster.controllers.network.backends import (
    Backend,
    BackendController,
    Port,
    reference_to,
)
from kvestigate.kube.views.network import (
    EndpointAddress,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    Service,
)

MANAGED_BY = "endpoints.kubernetes.io/managed-by"
HEADLESS = "service.kubernetes.io/headless"


def decide(service: Service, backends_found: Iterable[Backend]) -> tuple[EndpointSubset, ...]:
    """One subset for each set of ports."""
    groups: dict[tuple[Port, ...], tuple[list[EndpointAddress], list[EndpointAddress]]] = {}
    for backend in backends_found:
        if backend.terminating and not service.spec.publish_not_ready_addresses:
            continue
        if not backend.ports and service.spec.ports:
            continue
        ready, waiting = groups.setdefault(backend.ports, ([], []))
        (ready if backend.ready else waiting).append(_address(service, backend))
    return tuple(
        EndpointSubset(
            addresses=tuple(ready),
            not_ready_addresses=tuple(waiting),
            ports=tuple(EndpointPort(*port) for port in ports),
        )
        for ports, (ready, waiting) in sorted(groups.items())
    )


def _address(service: Service, backend: Backend) -> EndpointAddress:
    pod = backend.pod
    named = backend.hostname and pod.spec.subdomain == service.metadata.name
    return EndpointAddress(
        ip=pod.status.pod_ip,
        hostname=backend.hostname if named else "",
        node_name=pod.spec.node_name,
        target_ref=reference_to(pod),
    )


def labels_of(service: Service) -> dict[str, str]:
    labels = {**service.metadata.labels, MANAGED_BY: "endpoint-controller"}
    if service.spec.cluster_ip == "None":
        labels[HEADLESS] = ""
    return labels


class EndpointsController(BackendController):
    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._endpoints = context.watch(ENDPOINTS, owners.itself)

    async def reconcile(self, key: Key) -> float | None:
        service, present = self._objects.get(key), self._endpoints.get(key)
        if service is None:
            await self._forget(present)
        elif service.spec.selector and service.metadata.deletion_timestamp is None:
            subsets = decide(service, self._backends(service))
            await self._write(key, present, labels_of(service), subsets)
        return None

    async def _forget(self, present: Endpoints | None) -> None:
        """Only what this controller has made: others are the business of their makers."""
        if present is not None and MANAGED_BY in present.metadata.labels:
            await self._context.delete(ENDPOINTS, present)

    async def _write(
        self,
        key: Key,
        present: Endpoints | None,
        labels: dict[str, str],
        subsets: Sequence[EndpointSubset],
    ) -> None:
        content = [_written(subset) for subset in subsets]
        if present is None:
            body = {
                "apiVersion": "v1",
                "kind": "Endpoints",
                "metadata": {"name": key.name, "namespace": key.namespace, "labels": labels},
                "subsets": content,
            }
            await self._context.create(ENDPOINTS, body)
        elif present.subsets != tuple(subsets) or present.metadata.labels != labels:
            gone = {name: None for name in present.metadata.labels if name not in labels}
            patch = {"metadata": {"labels": {**gone, **labels}}, "subsets": content or None}
            await self._context.patch(ENDPOINTS, present, patch)


def _written(subset: EndpointSubset) -> dict[str, Any]:
    content: dict[str, Any] = msgspec.to_builtins(subset)
    for port, shown in zip(subset.ports, content.get("ports", ()), strict=False):
        shown["protocol"] = port.protocol  # a view leaves its default out
    return content

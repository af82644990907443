"""APIServices: whether the server of an aggregated API can be reached."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kvestigate.client.cache import Change, Key, key_of
from kvestigate.cluster.controllers import conditions, owners
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import API_SERVICES, ENDPOINT_SLICES, SERVICES
from kvestigate.cluster.controllers.objects import ApiService
from kvestigate.cluster.controllers.reconciler import Reconciler
from kvestigate.cluster.controllers.times import stamp
from kvestigate.kube.views.meta import Condition
from kvestigate.kube.views.network import EndpointSlice, Service

AVAILABLE = "Available"
SERVICE_NAME = "kubernetes.io/service-name"


def decide(
    api_service: ApiService, service: Service | None, slices: Sequence[EndpointSlice], now: float
) -> Condition:
    """The condition Available, in kube-aggregator's words."""

    def available(reason: str, message: str, status: str = "False") -> Condition:
        return Condition(AVAILABLE, status, reason, message, stamp(now))

    spec = api_service.spec
    backend = spec.service
    if backend is None:
        return available("Local", "Local APIServices are always available", "True")
    at = f'service/{backend.name} in "{backend.namespace}"'
    if service is None:
        return available("ServiceNotFound", f"{at} is not present")
    if service.spec.type in ("", "ClusterIP"):
        ports = [port for port in service.spec.ports if port.port == backend.port]
        if not ports:
            return available("ServicePortError", f"{at} is not listening on port {backend.port}")
        if not slices:
            return available("EndpointsNotFound", f"cannot find endpointslices for {at}")
        name = ports[0].name
        if not any(_serves(each, name) for each in slices):
            why = f'endpointslices for {at} have no addresses with port name "{name}"'
            return available("MissingEndpoints", why)
    url = f"https://{service.spec.cluster_ip}:{backend.port}/apis/{spec.group}/{spec.version}"
    why = "this API server does not forward requests to aggregated API servers"
    return available("FailedDiscoveryCheck", f"failing or missing response from {url}: {why}")


def _serves(endpoint_slice: EndpointSlice, port: str) -> bool:
    return any(each.name == port for each in endpoint_slice.ports) and any(
        endpoint.addresses and endpoint.conditions.ready is not False
        for endpoint in endpoint_slice.endpoints
    )


class ApiServiceController(Reconciler[ApiService]):
    def __init__(self, context: Context) -> None:
        super().__init__(context, API_SERVICES)
        self._services = context.watch(SERVICES, self._of_service)
        self._slices = context.watch(ENDPOINT_SLICES, self._of_slice)

    def _of_service(self, change: Change[Any]) -> Iterable[Key]:
        return self._behind(change.key)

    def _of_slice(self, change: Change[EndpointSlice]) -> Iterable[Key]:
        for view in change.views:
            yield from self._behind(change.key.sibling(view.metadata.labels.get(SERVICE_NAME, "")))

    def _behind(self, key: Key) -> Iterable[Key]:
        """The APIServices that a Service serves."""
        for api_service in self._objects:
            backend = api_service.spec.service
            if backend is not None and (backend.namespace, backend.name) == key:
                yield key_of(api_service)

    async def _reconcile(self, api_service: ApiService) -> float | None:
        backend = api_service.spec.service
        service, slices = None, list[EndpointSlice]()
        if backend is not None:
            service = self._services.get(Key(backend.namespace, backend.name))
            slices = [
                each
                for each in self._slices.find(owners.NAMESPACE, backend.namespace)
                if each.metadata.labels.get(SERVICE_NAME) == backend.name
            ]
        condition = decide(api_service, service, slices, self._context.now())
        every = conditions.put(api_service.status.conditions, condition)
        status = msgspec.structs.replace(api_service.status, conditions=every)
        await self._put_status(api_service, status)
        return None

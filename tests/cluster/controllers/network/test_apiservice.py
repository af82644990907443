"""When an aggregated API counts as available."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kvestigate.cluster.controllers.network.apiservice import decide
from kvestigate.cluster.controllers.objects import ApiService
from kvestigate.kube.views.network import EndpointSlice, Service
from tests.cluster.controllers.builders import NOW, view
from tests.cluster.controllers.conftest import Bed, running

BACKEND = {"namespace": "apis", "name": "server", "port": 443}
SERVICE = view(Service, "server", spec={"clusterIP": "10.0.0.9", "ports": [{"port": 443}]})


def api_service(**spec: Any) -> ApiService:
    return view(
        ApiService, "v1.example.com", spec={"group": "example.com", "version": "v1", **spec}
    )


def slices(*addresses: str) -> list[EndpointSlice]:
    body = {"ports": [{"name": "", "port": 443}], "endpoints": [{"addresses": addresses}]}
    return [msgspec.convert(body, EndpointSlice)]


@pytest.mark.parametrize(
    ("spec", "service", "found", "reason", "message"),
    [
        ({}, None, [], "Local", "Local APIServices are always available"),
        (
            {"service": BACKEND},
            None,
            [],
            "ServiceNotFound",
            'service/server in "apis" is not present',
        ),
        (
            {"service": {**BACKEND, "port": 1}},
            SERVICE,
            [],
            "ServicePortError",
            'service/server in "apis" is not listening on port 1',
        ),
        (
            {"service": BACKEND},
            SERVICE,
            [],
            "EndpointsNotFound",
            'cannot find endpointslices for service/server in "apis"',
        ),
        (
            {"service": BACKEND},
            SERVICE,
            slices(),
            "MissingEndpoints",
            'endpointslices for service/server in "apis" have no addresses with port name ""',
        ),
        (
            {"service": BACKEND},
            SERVICE,
            slices("10.1.0.1"),
            "FailedDiscoveryCheck",
            "failing or missing response from https://10.0.0.9:443/apis/example.com/v1: "
            "this API server does not forward requests to aggregated API servers",
        ),
    ],
)
def test_the_condition(
    spec: Any, service: Service | None, found: list[EndpointSlice], reason: str, message: str
) -> None:
    condition = decide(api_service(**spec), service, found, NOW)
    assert (condition.reason, condition.message) == (reason, message)
    assert condition.status == ("True" if reason == "Local" else "False")


async def test_the_condition_follows_the_service(embedded: Bed) -> None:
    def reason(found: Any) -> str:
        conditions = found["v1.example.com"].get("status", {}).get("conditions") or [{}]
        return str(conditions[0].get("reason", ""))

    spec = {"group": "example.com", "version": "v1", "service": {**BACKEND, "namespace": "default"}}
    priorities = {"groupPriorityMinimum": 100, "versionPriority": 100}
    body = {"metadata": {"name": "v1.example.com"}, "spec": {**spec, **priorities}}
    async with running(embedded, "apiservice-availability-controller"):
        await embedded.create("apiservices", body)
        await embedded.until("apiservices", lambda found: reason(found) == "ServiceNotFound")
        ports = {"ports": [{"port": 443}]}
        await embedded.create("services", {"metadata": {"name": "server"}, "spec": ports})
        await embedded.until("apiservices", lambda found: reason(found) == "EndpointsNotFound")

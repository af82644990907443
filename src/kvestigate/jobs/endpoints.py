"""Where the ports of a task are reached."""

from __future__ import annotations

from kvestigate.client.api import Api
from kvestigate.errors import NotFound
from kvestigate.jobs.answers import Endpoint, EndpointResponse
from kvestigate.jobs.tasks.compile import ports_name
from kvestigate.kube import builtins
from kvestigate.kube.views.network import Service

SERVICES = builtins.resource("services")


async def find(api: Api, task_id: str) -> EndpointResponse:
    name = ports_name(task_id)
    try:
        service = await api.get(SERVICES, name, namespace=api.namespace, type=Service)
    except NotFound:
        raise NotFound(
            f"Task {task_id} has no ports", hint="list them in the task: `resources: {ports: 8080}`"
        ) from None
    spec = service.spec
    outside = [
        *spec.external_ips,
        *(each.ip or each.hostname for each in service.status.load_balancer.ingress),
    ]
    return EndpointResponse(
        task_id,
        tuple(
            Endpoint(
                port=each.port,
                address=_joined(spec.cluster_ip, each.port),
                name=f"{name}.{service.metadata.namespace}.svc:{each.port}",
                external=_joined(outside[0] if outside else "", each.port),
            )
            for each in spec.ports
        ),
    )


def _joined(host: str, port: int) -> str:
    if not host or host == "None":
        return ""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

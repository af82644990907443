"""CONNECT: admission of streams and proxies before they are opened.

Policies and webhooks see the request's parameters as an object, a PodExecOptions for example.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from kvestigate.cluster.plane.admission.interface import SubresourceObject, Write
from kvestigate.cluster.plane.admission.policies import evaluation
from kvestigate.cluster.plane.admission.policies.asking import asking
from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.verbs.converting import converter
from kvestigate.kube.resources import Resource

_KINDS = {
    (resource, subresource): Kind(Resource("", "v1", resource, name))
    for resource, subresource, name in (
        ("nodes", "proxy", "NodeProxyOptions"),
        ("pods", "attach", "PodAttachOptions"),
        ("pods", "exec", "PodExecOptions"),
        ("pods", "portforward", "PodPortForwardOptions"),
        ("pods", "proxy", "PodProxyOptions"),
        ("services", "proxy", "ServiceProxyOptions"),
    )
}
_STREAMS = ("stdin", "stdout", "stderr", "tty")


async def admit_connection(call: Call) -> None:
    """Ask policies and webhooks, before it is checked whether the pod or node exists."""
    write = _write(call)
    webhooks = asking(write, call.backends, call.random, call.aside, converter(call))
    if webhooks is not None:
        await webhooks.mutate(lambda write: None)
    if evaluation.BINDINGS in write.scene.state.collections:
        await call.aside(lambda: evaluation.judge(write))
    if webhooks is not None:
        await webhooks.validate()


def _write(call: Call) -> Write:
    kind = _KINDS[call.info.resource, call.info.subresource]
    options = _options(call, kind)
    shown_as = SubresourceObject(kind, lambda obj: dict(options), lambda obj, changed: None)
    return Write(
        "CONNECT",
        call.kind,
        {"metadata": {"name": call.info.name}},
        None,
        call.info,
        call.scene(call.plane.tip),
        call.warnings,
        call.served,
        creates=False,
        shown_as=shown_as,
        notes=call.notes,
    )


def _options(call: Call, kind: Kind) -> Object:
    """The parameters of the request as an object of the kind."""
    info, subresource = call.info, call.info.subresource
    options: dict[str, Any] = {"kind": kind.resource.kind, "apiVersion": "v1"}
    if subresource == "proxy":
        if path := _path(call):
            options["path"] = path
        return options
    pairs = parse_qsl(call.request.query, keep_blank_values=True)
    if subresource == "portforward":
        ports = [int(value) for name, value in pairs if name == "ports" and value.isdecimal()]
        return options | ({"ports": ports} if ports else {})
    options |= {name: True for name in _STREAMS if info.flag(name)}
    if container := info.params.get("container"):
        options["container"] = container
    command = [value for name, value in pairs if name == "command"]
    return options | ({"command": command} if command and subresource == "exec" else {})


def _path(call: Call) -> str:
    """The path behind `proxy`, with the trailing slash of the request."""
    path = f"/{call.info.rest}" if call.info.rest else ""
    return f"{path}/" if call.info.path.endswith("/") and not path.endswith("/") else path

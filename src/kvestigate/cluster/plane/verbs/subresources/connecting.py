"""CONNECT: what admission gets to see of streams and proxies before they are opened."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from kvestigate.cluster.plane.admission.interface import Face, Write
from kvestigate.cluster.plane.admission.policies import evaluation
from kvestigate.cluster.plane.admission.policies.asking import asking
from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.cluster.plane.request.call import Call
from kvestigate.kube.resources import Resource

_KINDS = {
    (resource, part): Kind(Resource("", "v1", resource, name))
    for resource, part, name in (
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
    """Refuse what policies and webhooks refuse, before anyone looks what there is to connect to."""
    write = _write(call)
    webhooks = asking(write, call.backends, call.random)
    if webhooks is not None:
        await webhooks.mutate(lambda write: None)
    evaluation.judge(write)
    if webhooks is not None:
        await webhooks.validate()


def _write(call: Call) -> Write:
    kind = _KINDS[call.info.resource, call.info.subresource]
    options = _options(call, kind)
    face = Face(kind, lambda obj: dict(options), lambda obj, shown: None)
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
        face=face,
        notes=call.notes,
    )


def _options(call: Call, kind: Kind) -> Object:
    """The parameters of the request, as an object."""
    info, part = call.info, call.info.subresource
    options: dict[str, Any] = {"kind": kind.resource.kind, "apiVersion": "v1"}
    if part == "proxy":
        if path := _path(call):
            options["path"] = path
        return options
    pairs = parse_qsl(call.request.query, keep_blank_values=True)
    if part == "portforward":
        ports = [int(value) for name, value in pairs if name == "ports" and value.isdecimal()]
        return options | ({"ports": ports} if ports else {})
    options |= {name: True for name in _STREAMS if info.flag(name)}
    if container := info.params.get("container"):
        options["container"] = container
    command = [value for name, value in pairs if name == "command"]
    return options | ({"command": command} if command and part == "exec" else {})


def _path(call: Call) -> str:
    """What is asked of the other side, with a slash at its end if there was one."""
    path = f"/{call.info.rest}" if call.info.rest else ""
    return f"{path}/" if call.info.path.endswith("/") and not path.endswith("/") else path

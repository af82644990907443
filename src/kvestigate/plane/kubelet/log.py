"""log: what a container wrote, from its node."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from kvestigate.errors import BadRequest
from kvestigate.kube import causes
from kvestigate.kube.causes import Cause
from kvestigate.plane import objects
from kvestigate.plane.call import Call
from kvestigate.plane.kubelet import relay
from kvestigate.plane.kubelet.locate import container_of, kubelet_of
from kvestigate.plane.request import Asked
from kvestigate.wire.message import Headers, Request, Response

_FLAGS = ("follow", "previous", "timestamps")
_POSITIVE = ("sinceSeconds", "limitBytes")


async def read_log(call: Call) -> Response:
    """GET pods/NAME/log"""
    query = _query(call.asked)
    pod = objects.read(call.find(call.plane.state))
    container = container_of(pod, call.asked.params.get("container", ""))
    node = pod["spec"].get("nodeName")
    if not node:
        return Response(204)  # nothing ran yet, so nothing was written
    address = kubelet_of(call.plane.state, node, as_kind="pods")
    path = f"/containerLogs/{call.namespace}/{quote(call.asked.name)}/{quote(container)}"
    request = Request("GET", path, urlencode(query), Headers([("accept-encoding", "identity")]))
    incoming = await relay.ask(call.backends, address, request)
    if incoming.status != 200:
        raise await relay.refusal(incoming)
    kind = incoming.headers.get("content-type") or "text/plain"
    return Response(200, [("content-type", kind)], relay.Body(incoming), compress=False)


def _query(asked: Asked) -> list[tuple[str, str]]:
    """The parameters that the kubelet is given; raises Invalid for those that make no sense."""
    query = [(name, "true") for name in _FLAGS if asked.flag(name)]
    found: list[Cause] = []
    for name in ("tailLines", *_POSITIVE):
        value = _integer(asked, name)
        if value is None:
            continue
        lowest, words = (1, "greater than 0") if name in _POSITIVE else (0, "")
        if value < lowest:
            words = words or "greater than or equal to 0"
            found.append(causes.invalid(name, value, f"must be {words}"))
        query.append((name, str(value)))
    since = asked.params.get("sinceTime", "")
    if since:
        query.append(("sinceTime", since))
        if "sinceSeconds" in asked.params:
            why = "at most one of `sinceTime` or `sinceSeconds` may be specified"
            found.append(causes.forbidden("[]", why))
    if asked.params.get("stream"):
        found.append(causes.forbidden("stream", "may not be specified"))
    if found:
        raise causes.reject("PodLogOptions", "", asked.name, found)
    return query


def _integer(asked: Asked, name: str) -> int | None:
    value = asked.params.get(name, "")
    if not value:
        return None
    try:
        return int(value)
    except ValueError:
        raise BadRequest(f'strconv.ParseInt: parsing "{value}": invalid syntax') from None

"""log: the output of a container, from the kubelet of its node."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from kvestigate.cluster.plane.egress import relay
from kvestigate.cluster.plane.egress.locate import container_of, kubelet_of
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.request.call import Call
from kvestigate.http.message import Headers, Request, Response
from kvestigate.kube import causes
from kvestigate.kube.causes import Cause

_FLAGS = ("follow", "previous", "timestamps")
_POSITIVE = ("sinceSeconds", "limitBytes")


async def read_log(call: Call) -> Response:
    """GET pods/NAME/log"""
    query = _query(call.info)
    pod = objects.read(call.find(call.plane.state))
    container = container_of(pod, call.info.params.get("container", ""))
    node = pod["spec"].get("nodeName")
    if not node:
        return Response(204)  # not scheduled, so there is no output
    address = kubelet_of(call.plane.state, node, as_kind="pods")
    path = f"/containerLogs/{call.namespace}/{quote(call.info.name)}/{quote(container)}"
    request = Request("GET", path, urlencode(query), Headers([("accept-encoding", "identity")]))
    incoming = await relay.send(call.backends, address, request)
    if incoming.status != 200:
        raise await relay.refusal(incoming)
    media = incoming.headers.get("content-type") or "text/plain"
    return Response(200, [("content-type", media)], relay.Body(incoming), compress=False)


def _query(info: RequestInfo) -> list[tuple[str, str]]:
    """The query for the kubelet; Invalid if parameters are out of range or exclude each other."""
    query = [(name, "true") for name in _FLAGS if info.flag(name)]
    problems: list[Cause] = []
    for name in ("tailLines", *_POSITIVE):
        value = info.integer(name)
        if value is None:
            continue
        lowest, words = (1, "greater than 0") if name in _POSITIVE else (0, "")
        if value < lowest:
            words = words or "greater than or equal to 0"
            problems.append(causes.invalid(name, value, f"must be {words}"))
        query.append((name, str(value)))
    since = info.params.get("sinceTime", "")
    if since:
        query.append(("sinceTime", since))
        if "sinceSeconds" in info.params:
            why = "at most one of `sinceTime` or `sinceSeconds` may be specified"
            problems.append(causes.forbidden("[]", why))
    if info.params.get("stream"):
        problems.append(causes.forbidden("stream", "may not be specified"))
    if problems:
        raise causes.reject("PodLogOptions", "", info.name, problems)
    return query

"""What a plane makes of the answers of admission webhooks, beside the API server."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from typing import Any

import pytest

from tests.cluster.plane.admission.policies.judge import Judge, Object, judging, patch
from tests.differential.server import RealServer, Reply, Server, plane_server
from tests.upstream.cluster import UpstreamCluster

GROUP = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps?dryRun=All"
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SOURCE = re.compile(r' in scheme [^"]*"[^"]+"')

ANSWERS: list[Object] = [
    {"response": {"allowed": True}},
    {"response": {"allowed": False}},
    {"response": {"allowed": False, "status": {"message": "no", "code": 409}}},
    {"response": {"allowed": False, "status": {"message": "no", "reason": "Conflict"}}},
    {"response": {"allowed": False, "status": {"message": "no", "code": 200}}},
    {"response": {"allowed": False, "status": {"details": {"causes": [{"field": "x"}]}}}},
    {"response": {"allowed": True, "warnings": ["take care"]}},
    {"response": {"uid": "other", "allowed": True}},
    {"review": {"apiVersion": "admission.k8s.io/v9"}},
    {"review": {"response": None}},
    {"raw": (500, b"oops")},
    {"raw": (400, b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"bad one"}')},
    {"response": patch({"op": "add", "path": "/data/added", "value": "yes"})},
    {"response": patch({"op": "add", "path": "/data/added", "value": 5})},
    {"response": patch({"op": "add", "path": "/unknown", "value": 5})},
    {"response": {"allowed": True, "patch": "W3t9XQ=="}},
]


async def sent(server: Server, method: str, path: str, body: Object | None) -> Reply:
    """In a thread: the webhook answers in this one."""
    data = None if body is None else json.dumps(body).encode()
    if isinstance(server, RealServer):
        return await asyncio.to_thread(lambda: asyncio.run(server.send(method, path, {}, data)))
    return await server.send(method, path, {}, data)


async def outcomes(server: Server, judge: Judge, kind: str) -> list[Any]:
    """What comes of each answer."""
    configurations = f"{GROUP}/{kind}webhookconfigurations"
    body = {"metadata": {"name": kind}, "webhooks": [judge.hook()]}
    assert (await sent(server, "POST", configurations, body)).status == 201
    config = {"metadata": {"name": "a"}, "data": {"own": "x"}}
    for pause in (0.0, *server.patience):  # until it is known of
        await asyncio.sleep(pause)
        await sent(server, "POST", MAPS, config)
        if judge.asked:
            break
    found = []
    for answer in ANSWERS:
        judge.response = answer.get("response", {"allowed": True})
        judge.review, judge.raw = answer.get("review", {}), answer.get("raw")
        found.append(_told(await sent(server, "POST", MAPS, config)))
    await sent(server, "DELETE", f"{configurations}/{kind}", None)
    judge.response, judge.review, judge.raw = {"allowed": True}, {}, None
    for pause in (0.0, *server.patience):  # until it is forgotten
        await asyncio.sleep(pause)
        before = len(judge.asked)
        await sent(server, "POST", MAPS, config)
        if len(judge.asked) == before:
            break
    return found


def _told(reply: Reply) -> Any:
    body = json.loads(SOURCE.sub("", UID.sub("<uid>", reply.data.decode())))
    shown = {key: body.get(key) for key in ("message", "reason", "details", "code", "data")}
    return reply.status, shown, reply.headers.get("warning")


@pytest.mark.parametrize("kind", ["validating", "mutating"])
async def test_answers_have_the_same_outcome(kind: str, kubernetes: UpstreamCluster) -> None:
    context = ssl.create_default_context(cafile=str(kubernetes.ca_file))
    async with judging() as judge:
        real = await outcomes(RealServer(kubernetes.port, context), judge, kind)
    async with judging() as judge, plane_server() as server:
        assert await outcomes(server, judge, kind) == real

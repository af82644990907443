"""Run a script on a server: from steps to the exchanges that are compared."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from typing import Any

import yaml

from tests.differential import converter, masking
from tests.differential.script import Script, Step
from tests.differential.server import Reply, Server

_NAME = re.compile(r"\{(\w+)\}")
_QUOTA_STATUS = re.compile(r"/resourcequotas/[^/]+/status$")


async def run(script: Script, server: Server) -> list[dict[str, Any]]:
    """The masked answers, a dict for each step."""
    names = {"ns": f"ns-{uuid.uuid4().hex[:8]}"}
    if script.converts:
        names |= converter.names()
    if script.namespaced:
        await _make_namespace(server, names["ns"])
    exchanges = []
    for step in script.steps:
        exchange = await _perform(step, server, names)
        for name, path in step.keep.items():
            names[name] = str(dig(exchange.get("body"), path))
        exchanges.append(exchange)
    masked = masking.masked(exchanges, names["ns"], managed=script.managed)
    return [_chosen(step, each) for step, each in zip(script.steps, masked, strict=True)]


def dig(value: Any, path: str) -> Any:
    """What is at a dotted path; None when nothing is. A slash separates keys with dots."""
    for part in path.split("/") if "/" in path else path.split("."):
        if isinstance(value, list) and part.lstrip("-").isdecimal():
            value = value[int(part)] if int(part) < len(value) else None
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value


async def _make_namespace(server: Server, name: str) -> None:
    """With the service account that pods need and that no controller makes here."""
    for path, named in (
        ("/api/v1/namespaces", name),
        (f"/api/v1/namespaces/{name}/serviceaccounts", "default"),
    ):
        body = json.dumps({"metadata": {"name": named}}).encode()
        reply = await server.send("POST", path, {}, body)
        assert reply.status in (201, 409), reply.data


async def _perform(step: Step, server: Server, names: dict[str, str]) -> dict[str, Any]:
    path = _filled(step.path, names)
    headers = {name: _filled(value, names) for name, value in step.headers.items()}
    if step.method == "WATCH":
        separator = "&" if "?" in path else "?"
        reply = await server.watch(f"{path}{separator}watch=1", headers, step.events)
        return _exchange(reply)
    body = None
    if step.body is not None:
        text = step.body if isinstance(step.body, str) else json.dumps(step.body)
        body = _filled(text, names).encode()
    reply = await server.send(step.method, path, headers, body)
    for pause in server.patience if step.until else ():
        if _awaited(step, reply):
            break
        await asyncio.sleep(pause)
        reply = await server.send(step.method, path, headers, body)
    if reply.status == 200 and _QUOTA_STATUS.search(path):
        await server.settle_quotas(names["ns"])
    return _exchange(reply)


def _awaited(step: Step, reply: Reply) -> bool:
    if isinstance(step.until, int):
        return reply.status == step.until
    body = json.loads(reply.data) if reply.status == 200 else None
    return all(dig(body, path) == value for path, value in step.until.items())


def _filled(text: str, names: dict[str, str]) -> str:
    return _NAME.sub(lambda match: names.get(match[1], match[0]), text)


def _exchange(reply: Reply) -> dict[str, Any]:
    exchange: dict[str, Any] = {"status": reply.status}
    media = ";".join(reply.headers.get("content-type", []))
    if media != "application/json":
        exchange["content-type"] = media
    for name in ("warning", "retry-after"):
        if name in reply.headers:
            exchange[name] = reply.headers[name]
    if reply.lines:
        exchange["events"] = [json.loads(line) for line in reply.lines]
    elif media == "application/json" and reply.data:
        exchange["body"] = json.loads(reply.data)
    elif media == "application/yaml":
        # Scalars stay text: how each server quotes them is not the question.
        exchange["body"] = yaml.load(reply.data, Loader=yaml.BaseLoader)
    else:
        exchange["body"] = reply.data.decode()
    return exchange


def _chosen(step: Step, exchange: dict[str, Any]) -> dict[str, Any]:
    if step.quiet:
        return {"status": exchange["status"]}
    if step.pick:
        exchange = {**exchange, "body": {path: dig(exchange["body"], path) for path in step.pick}}
    return exchange

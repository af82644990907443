"""Discovery and OpenAPI of a plane, beside those of the API server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kvestigate.cluster.plane.front import discovery
from kvestigate.cluster.plane.front.openapi import v3
from kvestigate.cluster.plane.kinds import types
from kvestigate.cluster.plane.store.state import EMPTY
from kvestigate.http.message import Headers, Request, Response
from tests.upstream.cluster import UpstreamCluster
from tests.upstream.judge import Json

PLAIN = "application/json"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

# Addresses are each server's own. Hashes tell how objects are stored, and that differs.
MASKED = ("serverAddressByClientCIDRs", "storageVersionHash")


def theirs(kubernetes: UpstreamCluster, path: str, accept: str = PLAIN) -> Json:
    with kubernetes.judge() as judge:
        document: Json = json.loads(judge.exchange("GET", path, accept=accept))
    return document


def ours(path: str, accept: str = PLAIN) -> Json:
    request = Request("GET", path, headers=Headers([("accept", accept)]))
    known = types.of(EMPTY)
    if path.startswith(v3.ROOT):
        return decoded(asyncio.run(v3.of(known).respond(path, request, "", _unhurried)))
    return decoded(discovery.of(known).respond(path, request))


async def _unhurried() -> None:
    """Nobody waits for a turn."""


def decoded(response: Response | None) -> Json:
    assert response is not None
    assert isinstance(response.body, bytes)
    document: Json = json.loads(response.body)
    return document


def masked(value: Any) -> Any:
    if isinstance(value, list):
        return [masked(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: masked(inner) for key, inner in value.items() if key not in MASKED}


def group_paths(kubernetes: UpstreamCluster) -> list[str]:
    groups = theirs(kubernetes, "/apis")["groups"]
    return [f"/apis/{group['name']}" for group in groups] + [
        f"/apis/{version['groupVersion']}" for group in groups for version in group["versions"]
    ]


def test_every_document_of_discovery_is_the_servers(kubernetes: UpstreamCluster) -> None:
    for path in ["/api", "/apis", "/api/v1", *group_paths(kubernetes)]:
        assert masked(ours(path)) == masked(theirs(kubernetes, path)), path


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_the_one_document_is_the_servers(path: str, kubernetes: UpstreamCluster) -> None:
    assert ours(path, AGGREGATED) == theirs(kubernetes, path, AGGREGATED)


UNSAID = ("description",)
"""Text for people."""
GVK = "x-kubernetes-group-version-kind"
SHARED = "io.k8s.apimachinery."


def said(schema: Any) -> Any:
    if isinstance(schema, list):
        return [said(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if len(schema.get("allOf", ())) == 1:
        # A reference is wrapped only where a description stands beside it.
        rest = {key: value for key, value in schema.items() if key != "allOf"}
        return said({**schema["allOf"][0], **rest})
    return {
        key: sorted(value)
        if key == "required"
        else {name: said(each) for name, each in value.items()}
        if key == "properties"
        else said(value)
        for key, value in schema.items()
        if key not in UNSAID
    }


def schemas(document: Json) -> Json:
    """Types that all groups share claim a kind in each: those claims are left out."""
    found = {name: said(schema) for name, schema in document["components"]["schemas"].items()}
    for name, schema in found.items():
        if name.startswith(SHARED):
            schema.pop(GVK, None)
    return found


def operations(document: Json) -> dict[tuple[str, str], tuple[Any, ...]]:
    # Left out: watching by a path of its own, which has long been deprecated, and the paths
    # and methods that only a proxy has.
    return {
        (path, method): (
            operation.get("operationId"),
            operation.get("x-kubernetes-action"),
            operation.get(GVK),
        )
        for path, entry in document["paths"].items()
        if "/watch/" not in path and "{path}" not in path and not path.endswith("/")
        for method, operation in entry.items()
        if method not in ("parameters", "head", "options")
    }


def test_schemas_and_operations_are_the_servers(kubernetes: UpstreamCluster) -> None:
    for path in ["/openapi/v3/api/v1", *(f"/openapi/v3{it}" for it in group_paths(kubernetes))]:
        if path.count("/") == 4 and "/apis/" in path:
            continue  # a group, not a version of it
        mine, real = ours(path), theirs(kubernetes, path)
        assert schemas(mine) == schemas(real), path
        assert operations(mine) == operations(real), path

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kvestigate import errors
from kvestigate.client.api import PODS, Api, PatchType, Propagation
from kvestigate.client.call import Selection
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.meta import PartialObject
from tests.client.scripted import OpenTransport, Script, answer, patient, pod, status

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")

Call = Callable[[Api], Awaitable[Any]]

OPTIONS = {"apiVersion": "v1", "kind": "DeleteOptions"}
JSON = "application/json"


@pytest.mark.parametrize(
    ("call", "method", "target", "content_type", "body"),
    [
        (lambda api: api.get(PODS, "a"), "GET", "/api/v1/namespaces/shop/pods/a", "", None),
        (
            lambda api: api.get(PODS, "a/b", namespace="x"),
            "GET",
            "/api/v1/namespaces/x/pods/a%2Fb",
            "",
            None,
        ),
        (lambda api: api.get(NODES, "n"), "GET", "/api/v1/nodes/n", "", None),
        (
            lambda api: api.get(DEPLOYMENTS, "d", subresource="status"),
            "GET",
            "/apis/apps/v1/namespaces/shop/deployments/d/status",
            "",
            None,
        ),
        (
            lambda api: api.create(PODS, {"a": 1}, dry_run=True, field_manager="me"),
            "POST",
            "/api/v1/namespaces/shop/pods?dryRun=All&fieldManager=me",
            JSON,
            {"a": 1},
        ),
        (
            lambda api: api.create(PODS, pod("a", namespace="own")),
            "POST",
            "/api/v1/namespaces/own/pods",
            JSON,
            pod("a", namespace="own"),
        ),
        (
            lambda api: api.create(PODS, b'{"a": 1}'),
            "POST",
            "/api/v1/namespaces/shop/pods",
            JSON,
            {"a": 1},
        ),
        (
            lambda api: api.replace(PODS, "a", {"b": 2}, subresource="status"),
            "PUT",
            "/api/v1/namespaces/shop/pods/a/status",
            JSON,
            {"b": 2},
        ),
        (
            lambda api: api.patch(PODS, "a", {"b": 2}),
            "PATCH",
            "/api/v1/namespaces/shop/pods/a",
            "application/merge-patch+json",
            {"b": 2},
        ),
        (
            lambda api: api.patch(PODS, "a", [{"op": "remove", "path": "/x"}], PatchType.JSON),
            "PATCH",
            "/api/v1/namespaces/shop/pods/a",
            "application/json-patch+json",
            [{"op": "remove", "path": "/x"}],
        ),
        (
            lambda api: api.patch(PODS, "a", {}, PatchType.STRATEGIC),
            "PATCH",
            "/api/v1/namespaces/shop/pods/a",
            "application/strategic-merge-patch+json",
            {},
        ),
        (
            lambda api: api.apply(PODS, pod("a"), force=True),
            "PATCH",
            "/api/v1/namespaces/shop/pods/a?fieldManager=kvestigate&force=true",
            "application/apply-patch+yaml",
            pod("a"),
        ),
        (
            lambda api: api.delete(PODS, "a"),
            "DELETE",
            "/api/v1/namespaces/shop/pods/a",
            JSON,
            OPTIONS,
        ),
        (
            lambda api: api.delete(
                PODS,
                "a",
                propagation=Propagation.FOREGROUND,
                grace_seconds=0,
                uid="u",
                resource_version="5",
                dry_run=True,
            ),
            "DELETE",
            "/api/v1/namespaces/shop/pods/a",
            JSON,
            OPTIONS
            | {
                "dryRun": ["All"],
                "propagationPolicy": "Foreground",
                "gracePeriodSeconds": 0,
                "preconditions": {"uid": "u", "resourceVersion": "5"},
            },
        ),
        (
            lambda api: api.delete_collection(PODS, Selection("x", labels="a=b")),
            "DELETE",
            "/api/v1/namespaces/x/pods?labelSelector=a%3Db",
            JSON,
            OPTIONS,
        ),
        (
            lambda api: api.scale(DEPLOYMENTS, "d", 3),
            "PATCH",
            "/apis/apps/v1/namespaces/shop/deployments/d/scale",
            "application/merge-patch+json",
            {"spec": {"replicas": 3}},
        ),
        (
            lambda api: api.evict("a", grace_seconds=5),
            "POST",
            "/api/v1/namespaces/shop/pods/a/eviction",
            JSON,
            {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": "a", "namespace": "shop"},
                "deleteOptions": {"gracePeriodSeconds": 5},
            },
        ),
        (
            lambda api: api.bind("a", "node-1", uid="u"),
            "POST",
            "/api/v1/namespaces/shop/pods/a/binding",
            JSON,
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "a", "uid": "u"},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
            },
        ),
        (
            lambda api: api.request("GET", "/readyz", query="verbose"),
            "GET",
            "/readyz?verbose",
            "",
            None,
        ),
    ],
)
async def test_verbs_become_requests(
    call: Call, method: str, target: str, content_type: str, body: Any
) -> None:
    server = Script(answer({}))
    await call(patient(InProcessTransport(server)))
    [request] = server.requests
    assert request.method == method
    assert (f"{request.path}?{request.query}" if request.query else request.path) == target
    assert request.headers.get("content-type") == content_type
    assert (json.loads(request.body) if request.body else None) == body
    assert request.headers.get("accept") == JSON


async def test_answers_come_as_the_type_that_was_asked_for(connected: OpenTransport) -> None:
    api = patient(await connected(Script(answer(pod("a", 7)))))
    assert await api.get(PODS, "a") == pod("a", 7)
    assert (await api.get(PODS, "a", type=PartialObject)).metadata.resource_version == "7"
    assert json.loads(await api.get(PODS, "a", type=bytes)) == pod("a", 7)


async def test_an_eviction_that_a_budget_forbids_is_not_repeated(connected: OpenTransport) -> None:
    server = Script(status(429, "TooManyRequests", "would violate the budget"))
    api = patient(await connected(server))
    with pytest.raises(errors.TooManyRequests, match="budget"):
        await api.evict("a")
    assert len(server.requests) == 1


async def test_an_answer_that_is_not_json_is_no_traceback(connected: OpenTransport) -> None:
    api = patient(await connected(Script(answer(b"<html>login here"))))
    with pytest.raises(errors.InputError, match='get pods "a"'):
        await api.get(PODS, "a")


async def test_a_list_of_another_shape_names_the_resource(connected: OpenTransport) -> None:
    api = patient(await connected(Script(answer({"metadata": {}, "items": [{"metadata": 5}]}))))
    with pytest.raises(errors.InputError, match="pods"):
        await api.list(PODS, type=PartialObject)

from __future__ import annotations

from typing import Any

import pytest

from kvestigate import errors
from kvestigate.client.discovery import Discovery
from kvestigate.http.message import Request, Response
from tests.client.scripted import OpenTransport, answer, patient, status

WIDGET: dict[str, Any] = {
    "resource": "widgets",
    "responseKind": {"group": "example.com", "version": "v1", "kind": "Widget"},
    "scope": "Namespaced",
    "singularResource": "widget",
    "shortNames": ["wd"],
    "categories": ["all"],
    "verbs": ["get", "list"],
    "subresources": [{"subresource": "status", "verbs": ["get"]}],
}
AGGREGATED = {
    "/api": {"kind": "APIGroupDiscoveryList", "items": [{"metadata": {}, "versions": []}]},
    "/apis": {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {"name": "example.com"},
                "versions": [
                    {"version": "v1", "resources": [WIDGET, {"resource": "gone"}]},
                    {"version": "v1beta1", "resources": [WIDGET]},
                ],
            }
        ],
    },
}
FLAT = {
    "resources": [
        {
            "name": "widgets",
            "kind": "Widget",
            "namespaced": True,
            "singularName": "widget",
            "shortNames": ["wd"],
            "categories": ["all"],
            "verbs": ["get", "list"],
        },
        {"name": "widgets/status", "kind": "Widget", "namespaced": True, "verbs": ["get"]},
    ]
}
BETA = {"groupVersion": "example.com/v1beta1", "version": "v1beta1"}
STABLE = {"groupVersion": "example.com/v1", "version": "v1"}
LEGACY = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True, "verbs": []}]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {"name": "example.com", "versions": [BETA, STABLE], "preferredVersion": STABLE},
            {
                "name": "metrics.example.com",
                "versions": [{"groupVersion": "metrics.example.com/v1", "version": "v1"}],
            },
        ],
    },
    "/apis/example.com/v1": FLAT,
    "/apis/example.com/v1beta1": FLAT,
}


class Server:
    def __init__(self, paths: dict[str, Any]) -> None:
        self.paths = paths
        self.requests: list[str] = []

    async def __call__(self, request: Request) -> Response:
        self.requests.append(request.path)
        if request.path not in self.paths:
            return status(503, "ServiceUnavailable", "no endpoints")
        if request.path in ("/api", "/apis"):
            assert "as=APIGroupDiscoveryList" in request.headers.get("accept")
        return answer(self.paths[request.path])


@pytest.mark.parametrize("word", ["po", "pods", "deploy", "deployments.apps", "Node"])
async def test_built_in_words_need_no_request(connected: OpenTransport, word: str) -> None:
    server = Server({})
    found = await Discovery(patient(await connected(server))).resolve(word)
    assert found.plural in ("pods", "deployments", "nodes")
    assert server.requests == []


@pytest.mark.parametrize("paths", [AGGREGATED, LEGACY], ids=["aggregated", "legacy"])
@pytest.mark.parametrize("word", ["widgets", "widget", "wd", "Widget", "widgets.example.com"])
async def test_custom_resources_are_found_by_every_name(
    connected: OpenTransport, paths: dict[str, Any], word: str
) -> None:
    discovery = Discovery(patient(await connected(Server(paths))))
    found = await discovery.resolve(word)
    assert (found.group, found.version, found.plural, found.kind) == (
        "example.com",
        "v1",
        "widgets",
        "Widget",
    )
    assert (found.namespaced, found.singular, found.short_names) == (True, "widget", ("wd",))
    assert (found.verbs, found.categories) == (("get", "list"), ("all",))
    assert found.subresources == ("status",)


async def test_two_requests_tell_all_and_are_made_once(connected: OpenTransport) -> None:
    server = Server(AGGREGATED)
    discovery = Discovery(patient(await connected(server)))
    for word in ("widgets", "wd"):
        await discovery.resolve(word)
    assert sorted(server.requests) == ["/api", "/apis"]
    discovery.forget()
    await discovery.resolve("wd")
    assert len(server.requests) == 4


async def test_a_group_that_does_not_answer_hides_only_itself(connected: OpenTransport) -> None:
    discovery = Discovery(patient(await connected(Server(LEGACY))))
    assert (await discovery.resolve("widgets")).group == "example.com"
    assert discovery.unavailable == ["metrics.example.com/v1"]


async def test_an_unknown_word_gets_a_hint(connected: OpenTransport) -> None:
    discovery = Discovery(patient(await connected(Server(AGGREGATED))))
    with pytest.raises(errors.UsageError, match='no resource type "widgtes"') as caught:
        await discovery.resolve("widgtes")
    assert caught.value.hint is not None
    assert "widgets" in caught.value.hint

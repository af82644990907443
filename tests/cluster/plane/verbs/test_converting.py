"""Custom resources whose versions a webhook converts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from random import Random
from typing import Any

import msgspec
import pytest

from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.interface import AllowAll
from kvestigate.cluster.plane.egress.addresses import Allowance
from kvestigate.cluster.plane.egress.dialer import Dialer
from kvestigate.cluster.plane.egress.reach import Backends
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cluster.plane.verbs import converting
from kvestigate.http.message import Response
from tests.cluster.plane.admission.policies.conftest import register
from tests.cluster.plane.admission.policies.judge import Judge, judging, patch
from tests.cluster.plane.conftest import ADMIN, TOKEN, Api
from tests.differential import converter
from tests.static_tokens import StaticTokens

Object = dict[str, Any]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION = f"{DEFINITIONS}/routes.example.com"
V1, V2 = (f"/apis/example.com/{version}/namespaces/default/routes" for version in ("v1", "v2"))
FIELDS = {"v1": ("host", "port"), "v2": ("address",)}


@asynccontextmanager
async def serving(*allowed: str) -> AsyncIterator[Api]:
    tokens = StaticTokens({digest(TOKEN): ADMIN})
    dialer = Dialer([Allowance.parse(each) for each in allowed])
    async with Store(MemoryBackend()) as store, aclosing(Backends(dialer=dialer)) as backends:
        yield Api(ApiServer(store, tokens, AllowAll(), random=Random(1), backends=backends))


@pytest.fixture
async def plane() -> AsyncIterator[Api]:
    async with serving("127.0.0.0/8") as api:
        yield api


def definition(path: str = "convert", storage: str = "v1", **config: str) -> Object:
    names = converter.names()
    client = {"url": f"{names['converter']}/{path}", "caBundle": names["ca"], **config}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
    return {
        "metadata": {"name": "routes.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "routes", "kind": "Route"},
            "conversion": {"strategy": "Webhook", "webhook": webhook},
            "versions": [_version(name, storage) for name in FIELDS],
        },
    }


def _version(name: str, storage: str) -> Object:
    spec = {"type": "object", "properties": {key: {"type": "string"} for key in FIELDS[name]}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {"name": name, "served": True, "storage": name == storage, "schema": schema}


def route(version: str, name: str = "a", **spec: str) -> Object:
    kind = {"apiVersion": f"example.com/{version}", "kind": "Route"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


async def define(api: Api, path: str = "convert", **config: str) -> None:
    assert (await api.post(DEFINITIONS, definition(path, **config))).status == 201


def stored(api: Api, name: str = "a") -> Object:
    """The object as it is in the store."""
    plane = api.server.planes.store.loaded("root")
    assert plane is not None
    item = plane.state.get(("example.com", "routes"), "default", name)
    assert item is not None
    return dict(msgspec.json.decode(item.data))


async def test_objects_are_stored_at_one_version_and_shown_at_the_clients(plane: Api) -> None:
    await define(plane)
    made = await plane.post(V2, route("v2", address="h:1"))
    assert (made.status, made.body["spec"]) == (201, {"address": "h:1"})
    assert stored(plane)["apiVersion"] == "example.com/v1"
    assert stored(plane)["spec"] == {"host": "h", "port": "1"}
    assert (await plane.get(f"{V1}/a")).body["spec"] == {"host": "h", "port": "1"}


async def test_a_write_without_a_change_moves_an_object_to_the_storage_version(plane: Api) -> None:
    await define(plane)
    await plane.post(V1, route("v1", host="h", port="1"))
    moved = definition(storage="v2")["spec"]["versions"]
    assert (await plane.patch(DEFINITION, {"spec": {"versions": moved}})).status == 200
    before = (await plane.get(f"{V2}/a")).body
    assert stored(plane)["apiVersion"] == "example.com/v1"

    after = await plane.put(f"{V2}/a", before)
    assert after.body["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
    assert stored(plane)["apiVersion"] == "example.com/v2"
    assert stored(plane)["spec"] == {"address": "h:1"}
    again = await plane.put(f"{V2}/a", after.body)
    assert again.body["metadata"]["resourceVersion"] == after.body["metadata"]["resourceVersion"]


async def test_without_a_webhook_objects_move_too(plane: Api) -> None:
    plain = definition()
    plain["spec"]["conversion"] = {"strategy": "None"}
    assert (await plane.post(DEFINITIONS, plain)).status == 201
    await plane.post(V1, route("v1", host="h"))
    moved = definition(storage="v2")["spec"]["versions"]
    await plane.patch(DEFINITION, {"spec": {"versions": moved}})
    before = (await plane.get(f"{V2}/a")).body
    await plane.put(f"{V2}/a", before)
    assert stored(plane)["apiVersion"] == "example.com/v2"


async def test_tenants_cannot_aim_the_webhook_at_the_server_itself() -> None:
    async with serving() as api:
        await define(api)
        answer = await api.post(V2, route("v2", address="h:1"))
        assert answer.status == 400
        assert answer.body["message"].endswith("address not allowed")


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"caBundle": "bm90IFBFTQ=="}, "the CA is not a PEM certificate"),
        ({"url": "https://127.0.0.1:1/"}, "connect: connection refused"),
    ],
)
async def test_a_webhook_that_cannot_be_called_is_told(
    plane: Api, config: dict[str, str], why: str
) -> None:
    await define(plane, **config)
    answer = await plane.post(V2, route("v2", address="h:1"))
    assert (answer.status, why in answer.body["message"]) == (500, True)
    assert answer.body["message"].startswith("conversion webhook for example.com/v2, Kind=Route")


@pytest.mark.parametrize("port", ["x", "99999"])
async def test_a_url_that_is_none_is_refused(plane: Api, port: str) -> None:
    answer = await plane.post(DEFINITIONS, definition(url=f"https://127.0.0.1:{port}/"))
    assert answer.status == 422
    assert "url must be a valid URL" in answer.body["message"]


async def test_long_lists_are_asked_for_in_portions(
    plane: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await define(plane)
    names = [f"r{number}" for number in range(7)]
    for name in names:
        await plane.post(V1, route("v1", name, host=name, port="1"))
    monkeypatch.setattr(converting, "_MOST_OBJECTS", 3)
    items = (await plane.get(V2)).body["items"]
    assert [item["spec"]["address"] for item in items] == [f"{name}:1" for name in names]
    monkeypatch.setattr(converting, "_MOST_BYTES", 10)  # each is larger: asked for alone
    items = (await plane.get(f"{V2}?limit=4")).body["items"]
    assert [item["metadata"]["name"] for item in items] == names[:4]


async def test_an_answer_that_is_too_long_is_refused(
    plane: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await define(plane)
    await plane.post(V1, route("v1", host="h" * 5000, port="1"))
    monkeypatch.setattr(converting, "_ANSWER_LIMIT", 1000)
    assert (await plane.get(f"{V2}/a")).status == 500
    assert (await plane.get(f"{V1}/a")).status == 200


async def frames(api: Api, path: str, count: int) -> Sequence[Object]:
    response = await api.server.handle(api.request("GET", path))
    assert isinstance(response, Response)
    assert isinstance(response.body, AsyncIterator)
    found: list[Object] = []
    async for data in response.body:
        found += [msgspec.json.decode(line) for line in data.splitlines()]
        if len(found) >= count:
            break
    return found


async def test_watches_see_the_clients_version(plane: Api) -> None:
    await define(plane)
    await plane.post(V1, route("v1", host="h", port="1"))
    version = (await plane.get(V1)).body["metadata"]["resourceVersion"]
    await plane.post(V1, route("v1", "b", host="k", port="2"))
    await plane.delete(f"{V1}/a")

    initial = await frames(plane, f"{V2}?watch=1&resourceVersion=0", 1)
    assert initial[0]["object"]["spec"] == {"address": "k:2"}
    events = await frames(plane, f"{V2}?watch=1&resourceVersion={version}", 2)
    assert [(event["type"], event["object"]["spec"]["address"]) for event in events] == [
        ("ADDED", "k:2"),
        ("DELETED", "h:1"),
    ]


async def test_a_watch_ends_with_the_failure_of_the_webhook(plane: Api) -> None:
    await define(plane, "refuse")
    await plane.post(V1, route("v1", host="h", port="1"))
    (event,) = await frames(plane, f"{V2}?watch=1", 2)
    assert event["type"] == "ERROR"
    assert event["object"]["message"].endswith("failed: cannot do this")


@pytest.fixture
async def judge() -> AsyncIterator[Judge]:
    async with judging() as found:
        yield found


def rules(*versions: str) -> list[Object]:
    rule = {"apiGroups": ["example.com"], "operations": ["*"], "resources": ["routes"]}
    return [{**rule, "apiVersions": list(versions)}]


async def test_admission_webhooks_of_another_version_see_that_version(
    plane: Api, judge: Judge
) -> None:
    await define(plane)
    hook = judge.hook(rules=rules("v1"), matchPolicy="Equivalent")
    await register(plane, "mutating", hook)
    judge.response = patch({"op": "replace", "path": "/spec/host", "value": "changed"})

    made = await plane.post(V2, route("v2", address="h:1"))
    assert judge.asked[0]["object"]["spec"] == {"host": "h", "port": "1"}
    assert judge.asked[0]["object"]["apiVersion"] == "example.com/v1"
    assert made.body["spec"] == {"address": "changed:1"}


async def test_a_policy_of_another_version_does_not_let_pass_what_it_cannot_see(
    plane: Api,
) -> None:
    await define(plane)
    group = "/apis/admissionregistration.k8s.io/v1"
    constraints = {"matchPolicy": "Equivalent", "resourceRules": rules("v1")}
    validations = [{"expression": "object.spec.host != 'evil'"}]
    spec = {"matchConstraints": constraints, "validations": validations}
    policy = {"metadata": {"name": "p"}, "spec": spec}
    bound = {"policyName": "p", "validationActions": ["Deny"]}
    await plane.post(f"{group}/validatingadmissionpolicies", policy)
    binding = {"metadata": {"name": "p"}, "spec": bound}
    await plane.post(f"{group}/validatingadmissionpolicybindings", binding)

    refused = await plane.post(V2, route("v2", address="evil:1"))
    assert refused.status == 500
    assert "must match the version v2 itself" in refused.body["message"]
    assert (await plane.post(V1, route("v1", host="good", port="1"))).status == 201

"""Small requests that make large work of what is stored: refused, or done beside the loop."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from kvestigate.cluster.plane.model.objects import MOST_BYTES
from kvestigate.cluster.plane.request.body import MOST_VALUES
from tests.attacks.planes.conftest import A, Site
from tests.attacks.planes.test_long_work import no_long_turn

N = f"{A}/api/v1/namespaces/default"
DEPLOYMENTS = f"{A}/apis/apps/v1/namespaces/default/deployments"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"
ARGS = "/spec/containers/0/args"


def pod(**container: Any) -> bytes:
    spec = {"containers": [{"name": "c", "image": "i", **container}]}
    return msgspec.json.encode({"metadata": {"name": "p"}, "spec": spec})


OPERATIONS: dict[str, dict[str, Any]] = {
    "remove": {"op": "remove", "path": f"{ARGS}/0"},
    "add": {"op": "add", "path": f"{ARGS}/0", "value": "x"},
    "move": {"op": "move", "from": f"{ARGS}/0", "path": f"{ARGS}/-"},
    "move back": {"op": "move", "from": f"{ARGS}/-1", "path": f"{ARGS}/0"},
    "copy": {"op": "copy", "from": f"{ARGS}/1", "path": f"{ARGS}/0"},
}


@pytest.mark.parametrize("name", OPERATIONS)
async def test_operations_at_the_beginning_of_a_long_array(site: Site, name: str) -> None:
    made = await site.ann.post(f"{N}/pods", pod(args=["a"] * 90_000))
    assert made.status == 201, made.text[:300]
    patch = msgspec.json.encode([OPERATIONS[name]] * 10_000)
    with no_long_turn():
        reply = await site.ann.call("PATCH", f"{N}/pods/p", patch, content_type=JSON_PATCH)
    assert reply.status in (413, 422), reply.text[:300]


def template(env: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i", "env": env, **more}]}
    return {"spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": spec}}}


def variables(value: str) -> list[dict[str, Any]]:
    return [{"name": f"e{number}", "value": value} for number in range(8_000)]


LISTS: dict[str, dict[str, Any]] = {
    "change all": template([*reversed(variables("y"))]),
    "order anew": template([], **{"$setElementOrder/env": [*reversed(variables("y"))]}),
    "delete all": template([{"name": f"e{number}", "$patch": "delete"} for number in range(8_000)]),
    "replace": template([{"$patch": "replace"}, *variables("z")]),
    "keep none": template([], **{"$retainKeys": ["name"] * 8_000}),
}


@pytest.mark.parametrize("name", LISTS)
async def test_long_lists_that_are_merged_by_key(site: Site, name: str) -> None:
    body = template(variables("x"))
    body["metadata"] = {"name": "d"}
    body["spec"]["selector"] = {"matchLabels": {"a": "b"}}
    with no_long_turn():
        made = await site.ann.post(DEPLOYMENTS, msgspec.json.encode(body))
    assert made.status == 201, made.text[:300]
    patch = msgspec.json.encode(LISTS[name])
    with no_long_turn():
        reply = await site.ann.call("PATCH", f"{DEPLOYMENTS}/d", patch, content_type=STRATEGIC)
    assert reply.status < 500, reply.text[:300]


async def test_a_small_change_of_a_large_object(site: Site) -> None:
    finalizers = [f"a.b/c{number}" for number in range(60_000)]
    large = msgspec.json.encode({"metadata": {"name": "m", "finalizers": finalizers}})
    with no_long_turn():
        assert (await site.ann.post(f"{N}/configmaps", large)).status == 201
    with no_long_turn():
        reply = await site.ann.patch(f"{N}/configmaps/m", {"metadata": {"labels": {"a": "b"}}})
    assert reply.status == 200


async def test_managers_do_not_make_an_object_of_any_size(site: Site) -> None:
    """Each manager of server-side apply has a list of its fields in the object."""
    data = {f"{number:05}{'k' * 200}": "" for number in range(6_000)}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}
    body = msgspec.json.encode(config)
    statuses = []
    for number in range(8):
        path = f"{N}/configmaps/m?fieldManager=m{number}&force=true"
        reply = await site.ann.call(
            "PATCH", path, body, content_type="application/apply-patch+yaml"
        )
        statuses.append(reply.status)
    assert statuses[0] == 201
    assert statuses[-1] == 413
    stored = await site.ann.get(f"{N}/configmaps/m")
    assert len(stored.text) <= MOST_BYTES


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        ("lists", b"[" + b"[]," * MOST_VALUES + b"[]]", 413),
        ("objects", b'{"a":[' + b"{}," * MOST_VALUES + b"{}]}", 413),
        ("keys", msgspec.json.encode({str(number): 0 for number in range(MOST_VALUES + 9)}), 413),
        ("quotes", b'{"a":"' + b'\\\\",' + b'"b":"\\"",' * MOST_VALUES + b'"c":1}', 413),
        (
            "a text with commas",
            msgspec.json.encode({"metadata": {"name": "m"}, "data": {"a": ",[{" * 200_000}}),
            201,
        ),
        (
            "a text with quotes",
            msgspec.json.encode({"metadata": {"name": "m"}, "data": {"a": '","' * 200_000}}),
            201,
        ),
    ],
    ids=["lists", "objects", "keys", "quotes", "a text with commas", "a text with quotes"],
)
async def test_very_many_values(site: Site, name: str, body: bytes, status: int) -> None:
    with no_long_turn():
        reply = await site.ann.post(f"{N}/configmaps", body)
    assert reply.status == status, reply.text[:300]


REQUIREMENTS = {
    "labels": "labelSelector=" + quote(",".join(f"a{number}!=b" for number in range(1_500))),
    "fields": "fieldSelector=" + quote(",".join(["metadata.name!=b"] * 1_000)),
    "both": "labelSelector="
    + quote(",".join(f"a{number}!=b" for number in range(200)))
    + "&fieldSelector="
    + quote(",".join(["metadata.name!=b"] * 200)),
}


@pytest.mark.parametrize("watch", ["", "watch=true&"], ids=["list", "watch"])
@pytest.mark.parametrize("name", REQUIREMENTS)
async def test_selectors_of_very_many_requirements(site: Site, name: str, watch: str) -> None:
    reply = await site.ann.get(f"{N}/secrets?{watch}{REQUIREMENTS[name]}")
    assert reply.status == 400
    assert "requirements" in reply.message

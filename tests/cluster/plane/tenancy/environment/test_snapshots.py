"""GET /snapshot: everything at one revision."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cluster.plane.tenancy.environment.trimming import trim
from tests.cluster.plane.conftest import JANE, Api
from tests.cluster.plane.tenancy.environment.conftest import INSIDE, MAPS, config_map

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "toys.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "toys", "singular": "toy", "kind": "Toy", "listKind": "ToyList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def found(body: Any, resource: str) -> Any:
    (match,) = (each for each in body["resources"] if each["resource"] == resource)
    return match


async def test_it_has_every_object_once_under_its_resource(alpha: Api) -> None:
    await alpha.post(MAPS, config_map("a", k="v"))

    answer = await alpha.get("/snapshot")

    body = answer.body
    assert answer.status == 200
    assert list(body) == [
        "cluster",
        "snapshotTime",
        "resourceVersion",
        "liveResources",
        "resources",
    ]
    assert body["cluster"] == answer.headers.get("x-snapshot-cluster") == "alpha"
    assert body["snapshotTime"] == answer.headers.get("x-snapshot-time")
    maps = found(body, "configmaps")
    assert (maps["group"], maps["synced"], maps["itemCount"]) == ("", True, 1)
    (item,) = maps["items"]
    assert (item["kind"], item["apiVersion"], item["data"]) == ("ConfigMap", "v1", {"k": "v"})
    keys = [(each["group"], each["resource"]) for each in body["resources"]]
    assert keys == sorted(keys)
    assert all(each["itemCount"] == len(each["items"]) > 0 for each in body["resources"])


async def test_it_says_at_which_revision_it_is(alpha: Api) -> None:
    made = (await alpha.post(MAPS, config_map("a"))).body

    body = (await alpha.get("/snapshot")).body

    assert body["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_objects_are_those_of_a_list_without_their_managed_fields(alpha: Api) -> None:
    await alpha.post(MAPS, config_map("a", k='"managedFields":[{"a":"]"}]'))
    await alpha.post(
        "/api/v1/namespaces/default/pods",
        {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    )
    expected = {}
    for resource in ("configmaps", "pods"):
        items = (await alpha.get(f"/api/v1/namespaces/default/{resource}")).body["items"]
        for item in items:
            del item["metadata"]["managedFields"]
        expected[resource] = items

    body = (await alpha.get("/snapshot?resource=configmaps,pods")).body

    shown = {each["resource"]: each["items"] for each in body["resources"]}
    for items in shown.values():
        for item in items:
            del item["kind"], item["apiVersion"]
    assert shown == expected


async def test_custom_resources_are_in_it(alpha: Api) -> None:
    await alpha.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    toy = {
        "apiVersion": "example.com/v1",
        "kind": "Toy",
        "metadata": {"name": "ball"},
        "managedFields": [1],
    }
    await alpha.post("/apis/example.com/v1/namespaces/default/toys", toy)

    (item,) = found((await alpha.get("/snapshot")).body, "toys")["items"]

    assert (item["metadata"]["name"], item["managedFields"]) == ("ball", [1])
    assert "managedFields" not in item["metadata"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("resource=configmaps", ["configmaps"]),
        ("resource=namespaces,configmaps", ["configmaps", "namespaces"]),
        ("resource=clusterroles.rbac.authorization.k8s.io", ["clusterroles"]),
        ("resource=pods", []),
        ("resource=pods&includeEmpty=true", ["pods"]),
        ("resource=pods&includeEmpty=false&warm=true", []),
        ("resource=deployments,events&includeEmpty=1", ["events", "deployments"]),
    ],
)
async def test_the_parameters_choose_resources(alpha: Api, query: str, expected: list[str]) -> None:
    await alpha.post(MAPS, config_map("a"))

    body = (await alpha.get(f"/snapshot?{query}")).body

    assert [each["resource"] for each in body["resources"]] == expected


@pytest.mark.parametrize(
    ("path", "code", "reason", "message"),
    [
        ("/snapshot?resource=toys", 400, "BadRequest", 'this plane has no resource "toys"'),
        ("/snapshot?includeEmpty=perhaps", 400, "BadRequest", 'includeEmpty: "perhaps"'),
        ("/snapshot?warm=2", 400, "BadRequest", 'warm: "2"'),
    ],
)
async def test_what_cannot_be_answered_is_refused(
    alpha: Api, path: str, code: int, reason: str, message: str
) -> None:
    answer = await alpha.get(path)

    assert (answer.status, answer.body["kind"], answer.body["reason"]) == (code, "Status", reason)
    assert message in answer.body["message"]


async def test_a_plane_that_is_not_there_is_not_made_by_looking(api: Api) -> None:
    answer = await api.get("/clusters/typo/control-plane/snapshot")

    assert (answer.status, answer.body["reason"]) == (404, "NotFound")
    assert (await api.get("/clusters/typo")).status == 404


async def test_the_root_plane_has_one_too(api: Api) -> None:
    assert (await api.get("/snapshot")).body["cluster"] == "root"


async def test_other_methods_are_not_allowed(alpha: Api) -> None:
    assert (await alpha.post("/snapshot", {})).status == 405


async def grant(api: Api, name: str, rules: list[Any]) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    await api.post(f"{rbac}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    }
    made = await api.post(f"{rbac}/clusterrolebindings", binding)
    assert made.status == 201


SEE = {"nonResourceURLs": ["/snapshot"], "verbs": ["get"]}
LIST_MAPS = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}


@pytest.fixture
async def watched(guarded: Api) -> Api:
    """A plane with a secret, on a server that tells users apart."""
    await guarded.post("/clusters", {"id": "alpha"})
    inside = Api(guarded.server, INSIDE)
    await inside.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
    await inside.post(MAPS, config_map("a"))
    return inside


async def test_strangers_and_those_without_the_right_are_turned_away(watched: Api) -> None:
    assert (await watched.get("/snapshot", authorization="Bearer nobody")).status == 401
    denied = await watched.get("/snapshot", **JANE)
    assert (denied.status, denied.body["reason"]) == (403, "Forbidden")


async def test_only_what_may_be_listed_is_shown_and_the_rest_is_named(watched: Api) -> None:
    await grant(watched, "looker", [SEE, LIST_MAPS])

    body = (await watched.get("/snapshot", **JANE)).body

    assert [each["resource"] for each in body["resources"]] == ["configmaps"]
    assert {"group": "", "resource": "secrets"} in body["omitted"]


async def test_to_ask_for_what_may_not_be_listed_is_forbidden(watched: Api) -> None:
    await grant(watched, "looker", [SEE, LIST_MAPS])

    denied = await watched.get("/snapshot?resource=secrets", **JANE)

    assert denied.status == 403
    assert 'cannot list resource "secrets"' in denied.body["message"]


async def test_snapshots_among_writers_are_each_at_one_revision(alpha: Api) -> None:
    """A writer keeps two objects equal; whoever reads them listed apart sees them differ."""
    await alpha.post(MAPS, config_map("count", n="0"))
    writing = True

    async def write() -> None:
        for number in range(1, 200):
            await alpha.patch(f"{MAPS}/count", {"data": {"n": str(number)}})
            await alpha.post(MAPS, config_map(f"n-{number}"))

    async def read() -> None:
        last = 0
        while writing:
            body = (await alpha.get("/snapshot?resource=configmaps")).body
            (maps,) = body["resources"]
            newest = max(int(item["metadata"]["resourceVersion"]) for item in maps["items"])
            (count,) = (item for item in maps["items"] if item["metadata"]["name"] == "count")
            others = len(maps["items"]) - 1
            assert newest == int(body["resourceVersion"]) >= last
            assert int(count["data"]["n"]) in (others, others + 1)
            last = newest
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(32):
            group.create_task(read())
        await write()
        writing = False


names = st.text('"\\\\{}[]:,ab', max_size=6)
nested = st.dictionaries(names, st.dictionaries(names, names, max_size=2), max_size=2)
fields = st.lists(nested, max_size=2)
metadata = st.dictionaries(names, names | st.dictionaries(names, names, max_size=2), max_size=3)


@given(
    metadata,
    metadata,
    fields,
    st.dictionaries(names | st.just("managedFields"), fields, max_size=2),
)
def test_trimming_removes_the_managed_fields_and_nothing_else(
    before: dict[str, Any], after: dict[str, Any], managed: Any, rest: dict[str, Any]
) -> None:
    before.pop("managedFields", None)
    after.pop("managedFields", None)
    rest.pop("metadata", None)
    whole = {"metadata": {**before, "managedFields": managed, **after}, **rest}

    kept = msgspec.json.decode(trim(msgspec.json.encode(whole)))

    assert kept == {"metadata": {**before, **after}, **rest}

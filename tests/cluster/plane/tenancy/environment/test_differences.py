"""GET /diff: what differs between two states."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.cluster.plane.tenancy.environment.field_changes import field_changes
from tests.cluster.plane.conftest import JANE, Api
from tests.cluster.plane.tenancy.environment.conftest import INSIDE, MAPS, config_map
from tests.cluster.plane.tenancy.environment.test_snapshots import LIST_MAPS, grant


async def test_it_tells_what_came_went_and_changed(alpha: Api) -> None:
    await alpha.post(MAPS, config_map("changed", k="1"))
    await alpha.post(MAPS, config_map("gone"))
    start = (await alpha.get("/snapshot")).body["resourceVersion"]
    await alpha.patch(f"{MAPS}/changed", {"data": {"k": "2", "l": "3"}})
    await alpha.delete(f"{MAPS}/gone")
    await alpha.post(MAPS, config_map("new", k="v"))

    body = (await alpha.get(f"/diff?from={start}")).body

    assert body["summary"] == {"added": 1, "modified": 1, "deleted": 1}
    changed, gone, new = body["changes"]
    assert (changed["type"], changed["resource"], changed["name"]) == (
        "MODIFIED",
        "configmaps",
        "changed",
    )
    assert changed["fields"] == [
        {"path": "data.k", "from": "1", "to": "2"},
        {"path": "data.l", "to": "3"},
    ]
    assert (gone["type"], gone["object"]["metadata"]["name"]) == ("DELETED", "gone")
    assert (new["type"], new["object"]["data"]) == ("ADDED", {"k": "v"})
    assert "managedFields" not in new["object"]["metadata"]
    assert body["from"] == {"cluster": "alpha", "resourceVersion": start}


async def test_planes_and_checkpoints_are_compared(api: Api, alpha: Api) -> None:
    await alpha.post("/checkpoints", {"name": "start"})
    await alpha.post("/fork", {"name": "beta"})
    await Api(api.server, "/clusters/beta/control-plane").post(MAPS, config_map("b"))

    body = (await alpha.get("/diff?from=checkpoint:start&to=plane:beta")).body

    assert [(each["type"], each["name"]) for each in body["changes"]] == [("ADDED", "b")]
    assert (body["from"]["cluster"], body["to"]["cluster"]) == ("alpha", "beta")


async def test_a_restored_object_is_no_difference(alpha: Api) -> None:
    await alpha.post(MAPS, config_map("a", k="1"))
    await alpha.post("/checkpoints", {"name": "start"})
    await alpha.patch(f"{MAPS}/a", {"data": {"k": "2"}})
    await alpha.post("/restore", {"checkpoint": "start"})

    assert (await alpha.get("/diff?from=checkpoint:start")).body["changes"] == []


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("", 400, "from: missing"),
        ("from=yesterday", 400, 'from: "yesterday" is no point of a plane'),
        ("from=1&to=x", 410, "too old"),
        ("from=checkpoint:none", 404, 'checkpoints "none" not found'),
        ("from=plane:none", 404, 'clusters "none" not found'),
        ("from=99999", 504, "Too large resource version"),
    ],
)
async def test_what_cannot_be_compared_is_refused(
    alpha: Api, query: str, code: int, message: str
) -> None:
    answer = await alpha.get(f"/diff?{query}")

    assert answer.status == code
    assert message in answer.body["message"]


async def test_another_plane_is_shown_to_those_only_who_may_see_it(guarded: Api) -> None:
    for plane in ("alpha", "beta"):
        await guarded.post("/clusters", {"id": plane})
    alpha = Api(guarded.server, INSIDE)
    diff = {"nonResourceURLs": ["/diff"], "verbs": ["get"]}
    await grant(alpha, "differ", [diff, LIST_MAPS])

    assert (await alpha.get("/diff?from=plane:alpha", **JANE)).status == 200
    assert (await alpha.get("/diff?from=plane:beta", **JANE)).status == 403


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [("a", 1, 2)]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, [("a.b[1]", 2, 3)]),
        ({"a": {"x.io/y": "1"}}, {"a": {"x.io/y": "2"}}, [("a[x.io/y]", "1", "2")]),
        ({"a": 1}, {"a": True}, [("a", 1, True)]),
        ({"a": {}}, {"a": []}, [("a", {}, [])]),
        ({"a": None}, {"a": None}, []),
    ],
)
def test_fields_are_named_by_their_paths(before: Any, after: Any, expected: Any) -> None:
    assert [(c.path, c.before, c.after) for c in field_changes(before, after)] == expected

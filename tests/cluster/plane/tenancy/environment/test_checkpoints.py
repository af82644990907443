"""/checkpoints and /restore: states with a name, and the way back."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from tests.cluster.plane.conftest import Api
from tests.cluster.plane.tenancy.environment.conftest import MAPS, config_map


async def contents(api: Api) -> bytes:
    """Everything but the revisions, in an order of its own."""
    body = (await api.get("/snapshot")).body
    for resource in body["resources"]:
        for item in resource["items"]:
            del item["metadata"]["resourceVersion"]
    return msgspec.json.encode(body["resources"], order="sorted")


async def test_checkpoints_are_made_listed_and_deleted(alpha: Api) -> None:
    made = await alpha.post("/checkpoints", {"name": "start"})
    unnamed = await alpha.post("/checkpoints", None)

    assert (made.status, made.body["name"]) == (201, "start")
    assert unnamed.body["name"] == f"revision-{made.body['resourceVersion']}"
    listed = (await alpha.get("/checkpoints")).body["items"]
    assert listed == [unnamed.body, made.body]

    assert (await alpha.delete("/checkpoints/start")).body["status"] == "Success"
    assert (await alpha.get("/checkpoints")).body["items"] == [unnamed.body]
    assert (await alpha.delete("/checkpoints/start")).status == 404


async def test_a_checkpoint_moves_only_if_told_so(alpha: Api) -> None:
    first = (await alpha.post("/checkpoints", {"name": "start"})).body
    await alpha.post(MAPS, config_map("a"))

    assert (await alpha.post("/checkpoints", {"name": "start"})).status == 409
    moved = await alpha.post("/checkpoints", {"name": "start", "replace": True})

    assert moved.status == 201
    assert int(moved.body["resourceVersion"]) > int(first["resourceVersion"])


async def test_restoring_undoes_what_was_done(alpha: Api) -> None:
    await alpha.post(MAPS, config_map("kept", k="1"))
    await alpha.post(MAPS, config_map("lost"))
    await alpha.post("/checkpoints", {"name": "start"})
    before = await contents(alpha)
    await alpha.patch(f"{MAPS}/kept", {"data": {"k": "2"}})
    await alpha.delete(f"{MAPS}/lost")
    await alpha.post(MAPS, config_map("new"))

    answer = await alpha.post("/restore", {"checkpoint": "start"})

    assert (answer.status, answer.body["changes"]) == (200, 3)
    assert await contents(alpha) == before
    again = await alpha.post("/restore", {"checkpoint": "start"})
    assert again.body["resourceVersion"] >= answer.body["resourceVersion"]


async def test_a_revision_will_do(alpha: Api) -> None:
    made = (await alpha.post(MAPS, config_map("a"))).body["metadata"]["resourceVersion"]
    before = await contents(alpha)
    await alpha.delete(f"{MAPS}/a")

    assert (await alpha.post("/restore", {"resourceVersion": made})).status == 200
    assert await contents(alpha) == before


@pytest.mark.parametrize(
    ("path", "body", "code", "message"),
    [
        ("/restore", None, 400, "checkpoint or resourceVersion"),
        ("/restore", {"checkpoint": "none"}, 404, 'checkpoints "none" not found'),
        ("/restore", {"resourceVersion": "99999"}, 504, "Too large resource version"),
        ("/checkpoints", {"name": "No Name"}, 400, 'name: "No Name" cannot name a checkpoint'),
        ("/checkpoints", b"[", 400, "the body does not fit"),
    ],
)
async def test_what_cannot_be_done_is_refused(
    alpha: Api, path: str, body: Any, code: int, message: str
) -> None:
    answer = await alpha.post(path, body)

    assert answer.status == code
    assert message in answer.body["message"]


async def test_however_dirty_a_plane_is_it_comes_back_to_the_same_contents(alpha: Api) -> None:
    for number in range(20):
        await alpha.post(MAPS, config_map(f"m-{number}", n="0"))
    await alpha.post("/checkpoints", {"name": "start"})
    clean = await contents(alpha)
    random = Random(7)

    for round_ in range(100):
        for _ in range(3):
            await dirty(alpha, random, round_)
        await alpha.post("/restore", {"checkpoint": "start"})
        assert await contents(alpha) == clean
    changes = (await alpha.get("/diff?from=checkpoint:start")).body["changes"]
    assert changes == []


async def dirty(api: Api, random: Random, round_: int) -> None:
    name = f"m-{random.randrange(20)}"
    match random.randrange(3):
        case 0:
            await api.patch(f"{MAPS}/{name}", {"data": {"n": str(random.random())}})
        case 1:
            await api.delete(f"{MAPS}/{name}")
        case _:
            await api.post(MAPS, config_map(f"new-{round_}-{random.random()}"))

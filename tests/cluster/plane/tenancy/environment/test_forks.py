"""POST /fork: copies that share all they start with."""

from __future__ import annotations

import tracemalloc
from random import Random
from typing import Any

import pytest

from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.interface import AllowAll
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from tests.cluster.plane.conftest import ADMIN, JANE, TOKEN, Api
from tests.cluster.plane.tenancy.environment.conftest import INSIDE, MAPS, config_map
from tests.cluster.plane.tenancy.environment.test_snapshots import grant
from tests.static_tokens import StaticTokens


def inside(api: Api, plane: str) -> Api:
    return Api(api.server, f"/clusters/{plane}/control-plane")


async def names(api: Api) -> list[str]:
    listed = (await api.get(MAPS)).body["items"]
    return [item["metadata"]["name"] for item in listed]


async def test_a_fork_starts_with_everything_and_goes_its_own_way(api: Api, alpha: Api) -> None:
    await alpha.post(MAPS, config_map("a"))

    answer = await alpha.post("/fork", {"name": "beta"})

    assert answer.status == 201
    assert answer.body["items"] == [{"id": "beta", "path": "/clusters/beta/control-plane"}]
    beta = inside(api, "beta")
    assert await names(beta) == ["a"]
    await beta.post(MAPS, config_map("b"))
    await alpha.post(MAPS, config_map("c"))
    assert (await names(alpha), await names(beta)) == (["a", "c"], ["a", "b"])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"name": "x", "count": 3}, ["x-0000", "x-0001", "x-0002"]),
        ({"name": "x", "count": 1}, ["x-0000"]),
        ({"name": "x"}, ["x"]),
    ],
)
async def test_forks_are_named_as_told(alpha: Api, body: Any, expected: list[str]) -> None:
    assert [item["id"] for item in (await alpha.post("/fork", body)).body["items"]] == expected


async def test_a_fork_without_a_name_gets_one_after_its_source(alpha: Api) -> None:
    answers = [await alpha.post("/fork", body) for body in (None, {"count": 2})]

    ids = [item["id"] for answer in answers for item in answer.body["items"]]
    assert len(set(ids)) == 3
    assert all(name.startswith("alpha-") for name in ids)


async def test_a_generated_name_that_is_taken_is_not_used_again() -> None:
    random = Random(1)
    async with Store(MemoryBackend()) as store:
        tokens = StaticTokens({digest(TOKEN): ADMIN})
        api = Api(ApiServer(store, tokens, AllowAll(), random=random))
        ids = []
        for _ in range(2):
            random.seed(1)  # so that the same name is drawn first
            ids += [item["id"] for item in (await api.post("/fork", {})).body["items"]]

    assert len(set(ids)) == 2


async def test_a_fork_may_start_in_the_past(api: Api, alpha: Api) -> None:
    made = (await alpha.post(MAPS, config_map("a"))).body["metadata"]["resourceVersion"]
    await alpha.post("/checkpoints", {"name": "early"})
    await alpha.post(MAPS, config_map("b"))

    await alpha.post("/fork", {"name": "by-name", "checkpoint": "early"})
    await alpha.post("/fork", {"name": "by-revision", "resourceVersion": made})

    assert await names(inside(api, "by-name")) == ["a"]
    assert await names(inside(api, "by-revision")) == ["a"]


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"name": "alpha"}, 409, 'clusters "alpha" already exists'),
        ({"name": "Not A Name"}, 400, 'name: "Not A Name" cannot be the id of a plane'),
        ({"count": 0}, 400, "count: 0 is not between 1 and 10000"),
        ({"count": 10_001}, 400, "count: 10001"),
        ({"count": "many"}, 400, "the body does not fit"),
        ({"surprise": 1}, 400, "surprise"),
        ({"checkpoint": "none"}, 404, 'checkpoints "none" not found'),
        ({"checkpoint": "a", "resourceVersion": "1"}, 400, "give one of them"),
        ({"resourceVersion": "x"}, 400, 'resourceVersion: "x" is no revision'),
    ],
)
async def test_what_cannot_be_forked_is_refused(
    alpha: Api, body: Any, code: int, message: str
) -> None:
    answer = await alpha.post("/fork", body)

    assert answer.status == code
    assert message in answer.body["message"]


FORK = {"nonResourceURLs": ["/fork"], "verbs": ["post"]}
READ = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["list"]}
MAKE = {"nonResourceURLs": ["/clusters"], "verbs": ["post"]}


async def test_forking_takes_the_rights_to_fork_to_make_planes_and_to_read_everything(
    guarded: Api,
) -> None:
    await guarded.post("/clusters", {"id": "alpha"})
    alpha = Api(guarded.server, INSIDE)

    assert (await alpha.post("/fork", {}, **JANE)).status == 403
    await grant(alpha, "forker", [FORK])
    denied = await alpha.post("/fork", {}, **JANE)
    assert (denied.status, 'cannot post path "/clusters"' in denied.body["message"]) == (403, True)
    await grant(guarded, "maker", [MAKE])
    denied = await alpha.post("/fork", {}, **JANE)
    assert (denied.status, "cannot list resource" in denied.body["message"]) == (403, True)
    await grant(alpha, "reader", [READ])
    assert (await alpha.post("/fork", {}, **JANE)).status == 201


async def test_nobody_makes_planes_as_someone_they_may_only_be_in_one_plane(guarded: Api) -> None:
    await guarded.post("/clusters", {"id": "alpha"})
    alpha = Api(guarded.server, INSIDE)
    everything = {
        "apiGroups": [""],
        "resources": ["users", "groups"],
        "verbs": ["impersonate"],
    }
    await grant(alpha, "actor", [FORK, everything])

    answer = await alpha.post(
        "/fork", {}, **JANE, impersonate_user="jane", impersonate_group="system:masters"
    )

    assert answer.status == 403


async def test_a_fork_costs_next_to_nothing_until_it_diverges(api: Api, alpha: Api) -> None:
    for number in range(1000):
        await alpha.post(MAPS, config_map(f"m-{number}", text="x" * 200))
    await alpha.post("/fork", {"name": "first"})  # what is made once is not counted

    tracemalloc.start()
    try:
        for number in range(100):
            assert (await alpha.post("/fork", {"name": f"f-{number}"})).status == 201
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(await names(inside(api, "f-99"))) == 1000
    assert size / 100 < 20_000

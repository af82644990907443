"""Fleets: declared, filled, scaled, ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kvestigate.cluster.plane.store.sqlite.backend import SqliteBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cluster.plane.tenancy.fleets.controller import PATH
from tests.cluster.plane.tenancy.fleets.conftest import MAP, Harbour, harbour_of, is_settled
from tests.virtual_clock import VirtualClock

MAPS = "/api/v1/namespaces/default/configmaps"


def phases(fleet: Any) -> dict[str, str]:
    return {each["clusterID"]: each["phase"] for each in fleet["status"]["members"]}


def ready(fleet: Any) -> tuple[str, str]:
    (condition,) = fleet["status"]["conditions"]
    assert condition["type"] == "Ready"
    return condition["status"], condition["reason"]


async def test_a_fleet_gets_its_members(harbour: Harbour) -> None:
    await harbour.create("crew", replicas=3)

    fleet = await harbour.settled("crew")

    assert phases(fleet) == {"crew-0000": "Ready", "crew-0001": "Ready", "crew-0002": "Ready"}
    status = fleet["status"]
    assert (status["readyReplicas"], status["observedGeneration"]) == (3, 1)
    assert ready(fleet) == ("True", "AllReady")
    assert status["members"][0]["lastTransitionTime"] == "2027-01-15T08:00:00Z"
    assert await harbour.planes() == ["crew-0000", "crew-0001", "crew-0002"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ["crew-0000"]),
        ({"replicas": 0}, []),
        ({"replicas": 2, "namePrefix": "x"}, ["x0000", "x0001"]),
        ({"replicas": 2, "names": ["left", "right"]}, ["left", "right"]),
    ],
)
async def test_members_are_named_as_told(
    harbour: Harbour, spec: dict[str, Any], expected: list[str]
) -> None:
    await harbour.create("crew", **spec)
    await harbour.settled("crew")

    assert await harbour.planes() == expected


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"replicas": -1}, "spec.replicas", "greater than or equal to 0"),
        ({"replicas": 10_001}, "spec.replicas", "less than or equal to 10000"),
        ({"replicas": 2, "names": ["a"]}, "spec.names", "as many items as there are replicas (2)"),
        ({"replicas": 2, "names": ["a", "a"]}, "spec.names[1]", "Duplicate value"),
        ({"replicas": 1, "names": ["root"]}, "spec.names[0]", "the root plane"),
        ({"namePrefix": "No"}, "spec.namePrefix", "should match"),
        ({"ttlSeconds": 0}, "spec.ttlSeconds", "greater than or equal to 1"),
        (
            {"template": {"fromPlane": "a", "fromSnapshot": {"clusterID": "b"}}},
            "spec.template.fromSnapshot",
            "together with fromPlane",
        ),
        (
            {"template": {"fromPlane": "a", "clock": "virtual"}},
            "spec.template.clock",
            "the clock of the plane they stem from",
        ),
        ({"template": {"seed": 7}}, "spec.template.seed", "only members with clock: virtual"),
    ],
)
async def test_a_fleet_that_cannot_be_is_refused(
    harbour: Harbour, spec: dict[str, Any], field: str, message: str
) -> None:
    answer = await harbour.create("crew", **spec)

    assert answer.status == 422
    causes = answer.body["details"]["causes"]
    assert causes[0]["field"] == field
    assert message in causes[0]["message"]


async def test_a_name_that_cannot_begin_an_id_is_refused(harbour: Harbour) -> None:
    answer = await harbour.create("my.fleet")

    assert (answer.status, "namePrefix" in answer.body["message"]) == (422, True)


async def test_members_start_with_the_objects_of_the_template(harbour: Harbour) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    inside = {**MAP, "metadata": {"name": "inside", "namespace": "shop"}}
    await harbour.create("crew", replicas=2, template={"objects": [inside, MAP, namespace]})
    await harbour.settled("crew")

    for plane in ("crew-0000", "crew-0001"):
        member = harbour.inside(plane)
        assert (await member.get(f"{MAPS}/seeded")).status == 200
        assert (await member.get("/api/v1/namespaces/shop/configmaps/inside")).status == 200
    assert await harbour.planes() == ["crew-0000", "crew-0001"]


async def test_members_are_independent(harbour: Harbour) -> None:
    await harbour.create("crew", replicas=2, template={"objects": [MAP]})
    await harbour.settled("crew")

    await harbour.inside("crew-0000").delete(f"{MAPS}/seeded")

    assert (await harbour.inside("crew-0001").get(f"{MAPS}/seeded")).status == 200


async def test_members_are_copies_of_a_plane_and_of_what_one_was(harbour: Harbour) -> None:
    source = harbour.inside("source")
    await source.post(MAPS, {"metadata": {"name": "first"}})
    await source.post("/checkpoints", {"name": "early"})
    await source.post(MAPS, {"metadata": {"name": "second"}})

    await harbour.create("now", template={"fromPlane": "source"})
    origin = {"clusterID": "source", "checkpoint": "early"}
    await harbour.create("then", template={"fromSnapshot": origin, "objects": [MAP]})
    await harbour.settled("now")
    await harbour.settled("then")

    async def names(plane: str) -> list[str]:
        items = (await harbour.inside(plane).get(MAPS)).body["items"]
        return [item["metadata"]["name"] for item in items]

    assert await names("now-0000") == ["first", "second"]
    assert await names("then-0000") == ["first", "seeded"]


async def test_members_start_with_a_scenario(harbour: Harbour) -> None:
    await harbour.create("crew", template={"scenario": "one-map"})
    await harbour.settled("crew")

    seeded = await harbour.inside("crew-0000").get(f"{MAPS}/seeded")
    assert seeded.body["data"] == {"from": "scenario"}


async def test_members_have_a_virtual_clock_if_told_so(harbour: Harbour) -> None:
    await harbour.create("crew", template={"clock": "virtual", "seed": 7})
    await harbour.settled("crew")

    snapshot = (await harbour.inside("crew-0000").get("/snapshot")).body
    assert snapshot["snapshotTime"].startswith("2026-01-01T00:00:00")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ({"fromPlane": "nowhere"}, 'clusters "nowhere" not found'),
        ({"fromSnapshot": {"clusterID": "root", "checkpoint": "x"}}, 'checkpoints "x" not found'),
        ({"scenario": "none"}, 'scenario: "none" is not known'),
        (
            {"objects": [{"apiVersion": "v1", "kind": "Toy", "metadata": {"name": "x"}}]},
            "no kind 'Toy'",
        ),
        (
            {"objects": [{**MAP, "metadata": {"name": "x", "namespace": "none"}}]},
            'ConfigMap none/x: namespaces "none" not found',
        ),
    ],
)
async def test_what_cannot_be_seeded_fails_and_says_why(
    harbour: Harbour, template: dict[str, Any], message: str
) -> None:
    await harbour.create("crew", replicas=2, template=template)

    fleet = await harbour.settled("crew")

    assert phases(fleet) == {"crew-0000": "Failed", "crew-0001": "Failed"}
    assert message in fleet["status"]["members"][0]["message"]
    assert ready(fleet) == ("False", "MembersFailed")
    assert await harbour.planes() == []
    events = (await harbour.api.get("/api/v1/namespaces/default/events")).body["items"]
    assert [(each["type"], each["reason"]) for each in events] == [("Warning", "MembersFailed")]


async def test_failed_members_are_tried_again_when_the_fleet_changes(harbour: Harbour) -> None:
    await harbour.create("crew", template={"scenario": "none"})
    await harbour.settled("crew")

    await harbour.api.patch(f"{PATH}/crew", {"spec": {"template": {"scenario": "one-map"}}})

    assert phases(await harbour.settled("crew")) == {"crew-0000": "Ready"}


async def test_a_plane_that_is_there_already_is_left_alone(harbour: Harbour) -> None:
    await harbour.inside("crew-0001").post(MAPS, {"metadata": {"name": "mine"}})
    await harbour.create("crew", replicas=3)
    fleet = await harbour.settled("crew")

    assert phases(fleet) == {"crew-0000": "Ready", "crew-0001": "Failed", "crew-0002": "Ready"}
    assert "not of this Fleet" in fleet["status"]["members"][1]["message"]
    await harbour.api.delete(f"{PATH}/crew")
    await harbour.until("crew", lambda fleet: fleet is None)
    assert await harbour.planes() == ["crew-0001"]


async def test_a_fleet_grows_and_shrinks(harbour: Harbour) -> None:
    await harbour.create("crew", replicas=2, template={"objects": [MAP]})
    await harbour.settled("crew")
    await harbour.inside("crew-0000").delete(f"{MAPS}/seeded")

    await harbour.scale("crew", 4)
    fleet = await harbour.settled("crew")

    assert fleet["status"]["readyReplicas"] == 4
    assert (await harbour.inside("crew-0000").get(f"{MAPS}/seeded")).status == 404
    assert (await harbour.inside("crew-0003").get(f"{MAPS}/seeded")).status == 200

    await harbour.scale("crew", 1)
    await harbour.settled("crew")

    assert await harbour.planes() == ["crew-0000"]


async def test_the_scale_subresource_works(harbour: Harbour) -> None:
    await harbour.create("crew", replicas=1)
    await harbour.settled("crew")

    answer = await harbour.api.patch(f"{PATH}/crew/scale", {"spec": {"replicas": 2}})

    assert answer.status == 200
    await harbour.settled("crew")
    scale = (await harbour.api.get(f"{PATH}/crew/scale")).body
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (2, 2)


async def test_a_deleted_fleet_takes_its_members_along(harbour: Harbour) -> None:
    await harbour.create("crew", replicas=3)
    fleet = await harbour.settled("crew")
    assert fleet["metadata"]["finalizers"] == ["kplane.dev/members"]

    await harbour.api.delete(f"{PATH}/crew")
    await harbour.until("crew", lambda fleet: fleet is None)

    assert await harbour.planes() == []


async def test_a_member_that_somebody_deletes_is_made_again(harbour: Harbour) -> None:
    await harbour.create("crew", replicas=2, template={"objects": [MAP]})
    before = await harbour.settled("crew")
    await harbour.inside("crew-0000").delete(f"{MAPS}/seeded")

    await harbour.api.delete("/clusters/crew-0000")
    await harbour.until("crew", lambda fleet: is_settled(fleet) and fleet != before)

    assert (await harbour.inside("crew-0000").get(f"{MAPS}/seeded")).status == 200


async def test_a_fleet_ends_when_its_time_is_up(harbour: Harbour) -> None:
    await harbour.create("crew", replicas=2, ttlSeconds=60)
    await harbour.settled("crew")

    await harbour.clock.sleeper()
    harbour.clock.advance(59)
    assert await harbour.planes() == ["crew-0000", "crew-0001"]
    await harbour.clock.sleeper()
    harbour.clock.advance(1)
    await harbour.until("crew", lambda fleet: fleet is None)

    assert await harbour.planes() == []


async def test_a_member_is_made_anew_when_its_time_is_up(harbour: Harbour) -> None:
    await harbour.create("crew", memberTTLSeconds=60, template={"objects": [MAP]})
    before = await harbour.settled("crew")
    await harbour.inside("crew-0000").delete(f"{MAPS}/seeded")

    await harbour.clock.sleeper()
    harbour.clock.advance(60)
    first = before["status"]["members"][0]
    after = await harbour.until(
        "crew", lambda fleet: is_ready_anew(fleet["status"]["members"][0], first)
    )

    assert after["status"]["members"][0]["lastTransitionTime"] == "2027-01-15T08:01:00Z"
    assert (await harbour.inside("crew-0000").get(f"{MAPS}/seeded")).status == 200


def is_ready_anew(member: Any, before: Any) -> bool:
    return bool(member["phase"] == "Ready" and member != before)


async def test_what_happened_is_told_in_events(harbour: Harbour) -> None:
    await harbour.create("crew", replicas=2)
    await harbour.settled("crew")
    await harbour.scale("crew", 1)
    await harbour.settled("crew")

    events = (await harbour.api.get("/api/v1/namespaces/default/events")).body["items"]

    told = {each["reason"]: each["message"] for each in events}
    assert told == {"MembersCreated": "created 2 members", "MembersDeleted": "deleted 1 members"}
    assert {each["involvedObject"]["name"] for each in events} == {"crew"}


async def test_a_server_that_starts_again_goes_on_where_it_was(tmp_path: Path) -> None:
    clock = VirtualClock(1_800_000_000.0)
    async with Store(SqliteBackend(tmp_path / "planes.db")) as store:
        harbour, controller = harbour_of(store, clock)
        async with controller.running():
            await harbour.create("crew", replicas=2, template={"objects": [MAP]})
            before = await harbour.settled("crew")
        await harbour.scale("crew", 3)

    async with Store(SqliteBackend(tmp_path / "planes.db")) as store:
        harbour, controller = harbour_of(store, clock)
        async with controller.running():
            after = await harbour.settled("crew")

        assert after["status"]["members"][:2] == before["status"]["members"]
        assert await harbour.planes() == ["crew-0000", "crew-0001", "crew-0002"]

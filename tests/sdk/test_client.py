"""The SDK against a server, blocking and asynchronously."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import socket
from pathlib import Path
from typing import Any

import pytest

from kvestigate_client import AsyncPlaneClient, Connection, PlaneClient, PlaneError
from kvestigate_client.failures import Conflict, Forbidden, Invalid, NotFound, Unreachable


def config_map(name: str, namespace: str = "default", **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


def test_planes_come_and_go(client: PlaneClient) -> None:
    plane = client.create("alpha")

    assert client.planes() == ["alpha", "root"]
    assert (plane.id, client.exists("alpha")) == ("alpha", True)
    client.delete("alpha")
    assert not client.exists("alpha")


def test_manifests_are_applied_and_seen_in_a_snapshot(client: PlaneClient) -> None:
    plane = client.create("alpha")

    plane.apply(NAMESPACE, config_map("a", "shop", k="1"))
    plane.apply(config_map("a", "shop", k="2"))
    snapshot = plane.snapshot(["configmaps"])

    (found,) = snapshot.items("configmaps")
    assert found["data"] == {"k": "2"}
    assert snapshot.find("configmaps", "a", "shop") == found
    assert snapshot.find("configmaps", "a", "default") is None
    plane.delete(config_map("a", "shop"))
    assert plane.snapshot(["configmaps"]).items("configmaps") == []


def test_a_plane_is_put_back(client: PlaneClient) -> None:
    plane = client.create("alpha")
    plane.apply(config_map("a", k="1"))
    start = plane.checkpoint("start")
    clean = plane.snapshot()
    plane.apply(config_map("a", k="2"), config_map("b"))

    difference = plane.diff("checkpoint:start")

    assert [(each.type, each.name) for each in difference.changes] == [
        ("MODIFIED", "a"),
        ("ADDED", "b"),
    ]
    (changed,) = difference.of("MODIFIED")
    assert [(each.path, each.before, each.after) for each in changed.fields] == [
        ("data.k", "1", "2")
    ]
    assert plane.snapshot().digest() != clean.digest()
    assert plane.restore("start") == 2
    assert plane.snapshot().digest() == clean.digest()
    assert not plane.diff("checkpoint:start")
    assert plane.checkpoints() == [start]
    plane.drop_checkpoint("start")
    assert plane.checkpoints() == []


def test_forks_go_their_own_way(client: PlaneClient) -> None:
    plane = client.create("alpha")
    plane.apply(config_map("a"))

    one, two = plane.fork("copy", 2)
    one.apply(config_map("b"))

    assert (one.id, two.id) == ("copy-0000", "copy-0001")
    assert two.snapshot().digest() == plane.snapshot().digest() != one.snapshot().digest()
    assert [each.name for each in plane.diff("plane:alpha", "plane:copy-0000").changes] == ["b"]


def test_the_trajectory_names_the_actor(client: PlaneClient) -> None:
    plane = client.create("alpha")
    start = plane.snapshot().resource_version
    plane.apply(config_map("a"))

    (event,) = plane.events(start)
    (bare,) = plane.events(start, objects=False)

    assert (event.type, event.name, event.actor) == ("ADDED", "a", "kvestigate-admin")
    assert event.object is not None
    assert bare.object is None


def test_anything_else_can_be_asked(client: PlaneClient) -> None:
    plane = client.create("alpha")
    maps = "/api/v1/namespaces/default/configmaps"
    plane.request("POST", maps, config_map("a", k="1"))

    changed = plane.request("PATCH", f"{maps}/a", {"data": {"k": "2"}})
    listed = plane.request("GET", maps, params={"limit": 1})

    assert changed["data"] == {"k": "2"}
    assert [each["metadata"]["name"] for each in listed["items"]] == ["a"]


def test_a_watch_ends_in_time_where_time_stands_still(client: PlaneClient) -> None:
    plane = client.create("alpha", clock="virtual")
    params = {"watch": True, "timeoutSeconds": 1}

    assert plane.request("GET", "/api/v1/pods", params=params) == ""


def test_a_fleet_is_made_scaled_and_ended(client: PlaneClient) -> None:
    fleet = client.fleet("crew")
    fleet.create(3, template={"objects": [config_map("a")]})

    status = fleet.wait(timeout=20)

    assert (status.ready, status.replicas) == (3, 3)
    planes = fleet.planes()
    assert [plane.id for plane in planes] == ["crew-0000", "crew-0001", "crew-0002"]
    assert planes[2].snapshot().find("configmaps", "a") is not None
    fleet.scale(1)
    assert fleet.wait(timeout=20).ready == 1
    assert client.fleets() == ["crew"]


def test_a_plane_that_was_deleted_does_not_come_back(client: PlaneClient) -> None:
    """Or a worker that has not heard of it would go on in an empty plane, which nobody ends."""
    plane = client.create("alpha")
    client.delete("alpha")

    with pytest.raises(NotFound, match='clusters "alpha" not found'):
        plane.apply(config_map("a"))

    assert not client.exists("alpha")


def test_a_client_goes_to_another_process(client: PlaneClient) -> None:
    with pickle.loads(pickle.dumps(client)) as other:  # noqa: S301 - nobody else has touched it
        assert other.planes() == client.planes()


def test_a_fleet_that_fails_says_why(client: PlaneClient) -> None:
    fleet = client.fleet("crew")
    fleet.create(1, template={"fromPlane": "nowhere"})

    with pytest.raises(PlaneError, match="nowhere"):
        fleet.wait(timeout=20)


@pytest.mark.parametrize(
    ("attempt", "error", "message"),
    [
        (lambda client: client.plane("none").snapshot(), NotFound, 'clusters "none" not found'),
        (lambda client: client.create("root"), Conflict, 'clusters "root" already exists'),
        (lambda client: client.create("No Name"), Invalid, "cannot be the id of a plane"),
        (lambda client: client.plane("root").step(1), Invalid, "cannot be stepped"),
        (lambda client: client.delete("root"), Forbidden, "cannot be deleted"),
        (
            lambda client: client.plane("root").apply({"apiVersion": "v1", "kind": "ConfigMap"}),
            Invalid,
            "metadata.name",
        ),
        (
            lambda client: client.plane("root").apply(
                {"apiVersion": "v1", "kind": "Toy", "metadata": {"name": "x"}}
            ),
            Invalid,
            "no kind Toy",
        ),
        (
            lambda client: client.plane("root").apply(config_map("a") | {"apiVersion": "toys/v1"}),
            Invalid,
            "no kind ConfigMap in toys/v1",
        ),
        (
            lambda client: client.plane("root").apply(config_map("a") | {"data": {1, 2}}),
            Invalid,
            "cannot be written as JSON",
        ),
        (lambda client: client.create("alpha", seed=7), Invalid, "virtual clock"),
        (lambda client: client.fleet("crew").create(template={"sed": 7}), Invalid, "sed"),
        (lambda client: client.delete("../root"), Invalid, "is not a name"),
    ],
)
def test_refusals_are_exceptions(
    client: PlaneClient, attempt: Any, error: type[PlaneError], message: str
) -> None:
    with pytest.raises(error, match=message):
        attempt(client)


@pytest.mark.parametrize(
    "change",
    [
        {"apiVersion": "x/../../../../beta/control-plane/api/v1"},
        {"apiVersion": "v1?x="},
        {"apiVersion": 1},
        {"kind": ["ConfigMap"]},
        {"metadata": "a"},
        {"metadata": {"name": 5}},
        {"metadata": {"name": ".."}},
        {"metadata": {"name": "a/status"}},
        {"metadata": {"name": "a%2fstatus"}},
        {"metadata": {"name": "\ud800"}},
        {"metadata": {"name": "a", "namespace": "../../../../../beta/control-plane/api/v1"}},
        {"metadata": {"name": "a", "namespace": ["default"]}},
    ],
)
def test_no_manifest_leads_out_of_its_plane(client: PlaneClient, change: dict[str, Any]) -> None:
    """Agents write them."""
    plane, other = client.create("alpha"), client.create("beta")
    other.apply(config_map("a"))
    for attempt in (plane.apply, plane.merge, plane.delete):
        with pytest.raises(Invalid):
            attempt({**config_map("a"), **change})
    assert other.snapshot(["configmaps"]).find("configmaps", "a", "default") is not None


def test_a_server_that_says_nothing_is_named() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        PlaneClient(
            Connection(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.1)
        ) as client,
        pytest.raises(Unreachable, match="timed out"),
    ):
        client.planes()


def test_a_server_that_is_not_there_is_named() -> None:
    with (
        PlaneClient(Connection("http://127.0.0.1:9")) as client,
        pytest.raises(Unreachable, match=r"127\.0\.0\.1:9"),
    ):
        client.planes()


async def test_the_same_operations_are_awaited(kubeconfig: Path, client: PlaneClient) -> None:
    async with AsyncPlaneClient.from_kubeconfig(kubeconfig) as server:
        plane = await server.create("alpha")
        await plane.apply(config_map("a"))
        await plane.checkpoint("start")
        forks = await plane.fork(count=4)

        digests = await asyncio.gather(*(_digest(fork) for fork in forks))

        assert set(digests) == {(await plane.snapshot()).digest()}
        fleet = server.fleet("crew")
        await fleet.create(2)
        assert (await fleet.wait(timeout=20)).ready == 2
        assert [member.id for member in await fleet.planes()] == ["crew-0000", "crew-0001"]
        with pytest.raises(NotFound):
            await server.plane("none").snapshot()


async def test_a_loop_over_many_planes_asks_a_few_at_a_time() -> None:
    present, most, full = 0, 0, asyncio.Barrier(16)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal present, most
        with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                present += 1
                most = max(most, present)
                await full.wait()
                present -= 1
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n" + b'{"items":[]}')

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with AsyncPlaneClient(Connection(f"http://127.0.0.1:{port}")) as client:
            found = await asyncio.gather(*(client.planes() for _ in range(64)))

    assert found == [[]] * 64
    assert most == 16


async def _digest(plane: Any) -> str:
    snapshot = await plane.snapshot()
    return str(snapshot.digest())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "is not a kubeconfig"),
        ("{}", "no context is called None"),
        (
            '{"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "c"}}]}',
            "no cluster is called 'c'",
        ),
    ],
)
def test_a_kubeconfig_that_says_nothing_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)

    with pytest.raises(Invalid, match=message):
        Connection.from_kubeconfig(path)

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from kvestigate import errors
from kvestigate.aio.supervisor import Supervisor
from kvestigate.client.cache import Change, Key
from kvestigate.client.call import Selection
from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.authz.rbac import Rbac
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.model.user import AUTHENTICATED, MASTERS, User
from kvestigate.cluster.plane.store.history import Retention
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cluster.workforce.direct import DirectTransport
from kvestigate.cluster.workforce.feed import FedApi, Feed
from kvestigate.cluster.workforce.identities import SERVER
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.meta import PartialObject
from tests.static_tokens import StaticTokens

MAPS = builtins.resource("configmaps")
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


@pytest.fixture
async def fed() -> AsyncIterator[tuple[FedApi, Feed]]:
    """A plane without workers, with a short memory."""
    users = {digest("admin"): User("admin", (MASTERS, AUTHENTICATED))}
    async with Store(MemoryBackend(), Retention(changes=10)) as store:
        api = ApiServer(store, StaticTokens(users), Rbac())
        feed = Feed(await api.planes.create("a"))
        yield FedApi(DirectTransport(api, "a", SERVER), feed), feed


def config_map(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "data": {}}


async def start(
    api: FedApi, selection: Selection | None = None, resource: Resource = MAPS
) -> tuple[Any, list[tuple[str, str]]]:
    told: list[tuple[str, str]] = []
    informer = api.informer(resource, selection or Selection(), type=PartialObject)

    def note(change: Change[PartialObject]) -> None:
        told.append((change.type, change.key.name))

    informer.subscribe(note)
    async with Supervisor("test") as supervisor:
        await informer.start(supervisor, "informer")
    return informer, told


async def test_changes_are_told_in_their_order_when_it_catches_up(
    fed: tuple[FedApi, Feed],
) -> None:
    api, feed = fed
    await api.create(MAPS, config_map("before"))
    informer, told = await start(api)
    assert told == [("ADDED", "before")]
    await api.create(MAPS, config_map("later"))
    await api.patch(MAPS, "before", {"data": {"a": "b"}})
    await api.delete(MAPS, "later")
    assert len(told) == 1, "nothing is told before anybody asks"
    assert feed.catch_up()
    assert told[1:] == [("ADDED", "later"), ("MODIFIED", "before"), ("DELETED", "later")]
    assert not feed.catch_up()
    assert [view.metadata.name for view in informer] == ["before"]


async def test_what_was_written_is_told_of_as_what_it_was_answered_with(
    fed: tuple[FedApi, Feed],
) -> None:
    api, feed = fed
    informer, _ = await start(api)
    made = await api.create(MAPS, config_map("a"), type=PartialObject)
    feed.catch_up()
    assert informer.get(Key("default", "a")) == made


async def test_dicts_are_given_to_one_only(fed: tuple[FedApi, Feed]) -> None:
    api, _ = fed
    await api.create(MAPS, config_map("a"))
    first = await api.get(MAPS, "a")
    first["data"] = {"changed": "by its owner"}
    assert "changed" not in (await api.get(MAPS, "a")).get("data", {})


async def test_what_was_missed_for_too_long_is_found_by_comparison(
    fed: tuple[FedApi, Feed],
) -> None:
    api, feed = fed
    await api.create(MAPS, config_map("old"))
    informer, told = await start(api)
    await api.delete(MAPS, "old")
    for number in range(30):
        await api.create(MAPS, config_map(f"new-{number:02}"))
    assert feed.catch_up()
    assert told[1] == ("DELETED", "old")
    assert len(told) == 32
    assert len(informer) == 30


async def test_a_selection_is_kept_to(fed: tuple[FedApi, Feed]) -> None:
    api, feed = fed
    _, told = await start(api, Selection(labels="app=web"))
    await api.create(MAPS, config_map("other", app="db"))
    await api.create(MAPS, config_map("ours", app="web"))
    await api.patch(MAPS, "ours", {"metadata": {"labels": {"app": "db"}}})
    await api.patch(MAPS, "other", {"metadata": {"labels": {"app": "web"}}})
    feed.catch_up()
    assert told == [("ADDED", "ours"), ("DELETED", "ours"), ("ADDED", "other")]


async def test_leases_are_no_work(fed: tuple[FedApi, Feed]) -> None:
    api, feed = fed
    lease = {"metadata": {"name": "node-1"}, "spec": {"holderIdentity": "node-1"}}
    await api.create(builtins.resource("leases"), lease)
    assert not feed.catch_up()


async def test_a_type_that_is_not_served_is_refused_or_left_out(fed: tuple[FedApi, Feed]) -> None:
    api, _ = fed
    informer = api.informer(WIDGETS, type=PartialObject)
    async with Supervisor("test") as supervisor:
        with pytest.raises(errors.NotFound, match=r"widgets\.example\.com"):
            await informer.start(supervisor, "strict")
        (await informer.start(supervisor, "patient", patient=True))()
    assert len(informer) == 0


async def test_other_versions_are_shown_as_they_are_served(fed: tuple[FedApi, Feed]) -> None:
    """Events are stored once and served in two groups."""
    api, feed = fed
    served = Resource("events.k8s.io", "v1", "events", "Event")
    informer: Any = api.informer(served, type=PartialObject)
    async with Supervisor("test") as supervisor:
        await informer.start(supervisor, "events")
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    event = {"metadata": {"name": "e"}, "involvedObject": about, "reason": "R", "message": "m"}
    await api.create(builtins.resource("events"), event)
    feed.catch_up()
    assert informer.get(Key("default", "e")) is not None


async def test_discovery_knows_what_asking_would_tell(fed: tuple[FedApi, Feed]) -> None:
    from kvestigate.client.discovery import Discovery

    api, _ = fed
    known = {(r.group, r.version, r.plural): r for r in await Discovery(api).registry()}
    asked = {(r.group, r.version, r.plural): r for r in await Discovery(api).registry()}
    assert known.keys() >= asked.keys()
    for place, resource in asked.items():
        assert set(known[place].verbs) == set(resource.verbs), place
        assert known[place].kind == resource.kind

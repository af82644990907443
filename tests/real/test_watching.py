"""Watches that live through restarts of the API server, and informers through forgetfulness."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kvestigate.client.api import Api
from kvestigate.client.cache import Change, Key
from kvestigate.client.call import Selection
from kvestigate.client.informer import Informer
from tests.real.session import CONFIG_MAPS, ConfigMap, connected
from tests.real.tunnel import tunnel
from tests.upstream.cluster import ADMIN_TOKEN, UpstreamCluster
from tests.upstream.judge import Judge

pytestmark = pytest.mark.timeout(200)
PATIENCE = 150
"""Seconds. A restart takes two of them, unless the machine has much else to do."""


def _create(kubernetes: UpstreamCluster, namespace: str, *names: str) -> None:
    with kubernetes.judge() as judge:
        for name in names:
            path = CONFIG_MAPS.path(namespace=namespace)
            judge.post(path, {"metadata": {"name": name}})


def _names(prefix: str, count: int = 20) -> list[str]:
    return [f"{prefix}-{index:02}" for index in range(count)]


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
async def test_an_informer_misses_nothing_across_a_restart(
    kubernetes: UpstreamCluster, namespace: str, kill: bool
) -> None:
    _create(kubernetes, namespace, *_names("before"))
    async with connected(kubernetes.admin_kubeconfig()) as api, asyncio.timeout(PATIENCE):
        informer = api.informer(CONFIG_MAPS, Selection(namespace), type=ConfigMap)
        seen = _Seen(informer)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(informer.run())
            await informer.synced.wait()
            await asyncio.to_thread(_create, kubernetes, namespace, *_names("during"))
            await asyncio.to_thread(kubernetes.restart_apiserver, kill=kill)
            await asyncio.to_thread(_create, kubernetes, namespace, *_names("after"))
            await seen.count(60)
            running.cancel()
    assert sorted(seen.added) == sorted(_names("before") + _names("during") + _names("after"))


async def test_an_informer_notices_what_was_deleted_while_it_could_not_look(
    kubernetes: UpstreamCluster, namespace: str, judge: Judge
) -> None:
    _create(kubernetes, namespace, "kept", "lost")
    path = CONFIG_MAPS.path(namespace=namespace)
    async with connected(kubernetes.admin_kubeconfig()) as api, asyncio.timeout(PATIENCE):
        informer = api.informer(CONFIG_MAPS, Selection(namespace), type=ConfigMap)
        seen = _Seen(informer)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(informer.run())
            await informer.synced.wait()
            judge.delete(f"{path}/lost")  # the loop stands still: the watch has not heard of it
            kubernetes.forget_and_restart(kill=True)
            await seen.gone(Key(namespace, "lost"))
            running.cancel()
    assert [view.metadata.name for view in informer] == ["kept"]


async def test_a_watch_goes_on_where_its_connection_broke(
    kubernetes: UpstreamCluster, namespace: str
) -> None:
    with tunnel() as proxy:
        connection = {"certificate-authority": str(kubernetes.ca_file), "proxy-url": proxy.url}
        kubeconfig = kubernetes.kubeconfig(
            "by-proxy", credentials={"token": ADMIN_TOKEN}, connection=connection
        )
        async with connected(kubeconfig) as api, asyncio.timeout(PATIENCE):
            events = await _watched(api, kubernetes, namespace, proxy.cut)
    assert events == [("ADDED", name) for name in _names("first") + _names("second")]
    assert len(proxy.targets) > 1


async def _watched(
    api: Api, kubernetes: UpstreamCluster, namespace: str, interrupt: Callable[[], None]
) -> list[tuple[str, str]]:
    """Twenty changes, an interruption, and twenty more that happen before it is over."""
    selection = Selection(namespace)
    start = (await api.list(CONFIG_MAPS, selection)).metadata.resource_version
    seen: list[tuple[str, str]] = []
    async with api.watch(CONFIG_MAPS, selection, resource_version=start, type=ConfigMap) as events:
        await asyncio.to_thread(_create, kubernetes, namespace, *_names("first"))
        async for event in events:
            seen.append((event.type, event.object.metadata.name))
            if len(seen) == 20:
                interrupt()
                _create(kubernetes, namespace, *_names("second"))
            if len(seen) == 40:
                break
    return seen


class _Seen:
    """What an informer told, and a way to wait for it."""

    def __init__(self, informer: Informer[ConfigMap]) -> None:
        self.added: list[str] = []
        self._deleted: set[Key] = set()
        self._news = asyncio.Event()
        informer.subscribe(self._note)

    def _note(self, change: Change[ConfigMap]) -> None:
        if change.type == "ADDED":
            self.added.append(change.key.name)
        elif change.type == "DELETED":
            self._deleted.add(change.key)
        self._news.set()

    async def count(self, wanted: int) -> None:
        while len(self.added) < wanted:
            await self._next()

    async def gone(self, key: Key) -> None:
        while key not in self._deleted:
            await self._next()

    async def _next(self) -> None:
        await self._news.wait()
        self._news.clear()

"""Lists of a size that matters, and lists whose beginning the server has forgotten."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import aclosing

import pytest

from kvestigate.client.call import Selection
from kvestigate.errors import Expired
from tests.real.session import CONFIG_MAPS, ConfigMap, connected
from tests.upstream.binaries import ROOT
from tests.upstream.cluster import UpstreamCluster
from tests.upstream.crowd import everywhere
from tests.upstream.judge import Judge

MANY = 20_000
FILLING = "x" * 4_000
GROWTH_ALLOWED = 40
"""MiB. The whole list is above 80 MiB of JSON, and several times that as objects."""


def _create(kubernetes: UpstreamCluster, namespace: str, count: int, filling: str = "") -> None:
    path = CONFIG_MAPS.path(namespace=namespace)

    def create(judge: Judge, index: int) -> None:
        metadata = {"name": f"map-{index:06}"}
        judge.exchange("POST", path, {"metadata": metadata, "data": {"filling": filling}})

    everywhere(kubernetes, count, create)


@pytest.mark.timeout(900)
def test_twenty_thousand_objects_in_bounded_memory(
    kubernetes: UpstreamCluster, namespace: str
) -> None:
    _create(kubernetes, namespace, MANY, FILLING)
    reader = [sys.executable, "-m", "tests.real.reader"]
    done = subprocess.run(
        [*reader, str(kubernetes.admin_kubeconfig()), namespace],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    count, longest, growth = map(int, done.stdout.split())
    assert count == MANY
    assert longest == 500
    assert growth < GROWTH_ALLOWED


async def test_pages_are_the_whole_list_in_order(
    kubernetes: UpstreamCluster, namespace: str
) -> None:
    _create(kubernetes, namespace, 95)
    async with connected(kubernetes.admin_kubeconfig()) as api:
        pages = api.pages(CONFIG_MAPS, Selection(namespace), type=ConfigMap, limit=10)
        sizes, names = [], []
        async for page in pages:
            sizes.append(len(page.items))
            names += [item.metadata.name for item in page.items]
        whole = await api.list(CONFIG_MAPS, Selection(namespace), type=ConfigMap, limit=10)
    assert sizes == [10] * 9 + [5]
    assert names == [f"map-{index:06}" for index in range(95)]
    assert [item.metadata.name for item in whole.items] == names


@pytest.mark.timeout(200)
async def test_a_forgotten_list_goes_on_from_a_newer_state(
    kubernetes: UpstreamCluster, namespace: str, judge: Judge
) -> None:
    _create(kubernetes, namespace, 60)
    async with connected(kubernetes.admin_kubeconfig()) as api:
        names = []
        async with aclosing(
            api.pages(CONFIG_MAPS, Selection(namespace), type=ConfigMap, limit=5)
        ) as pages:
            first = await anext(pages)
            names += [item.metadata.name for item in first.items]
            judge.delete(CONFIG_MAPS.path(namespace=namespace, name="map-000059"))
            await asyncio.to_thread(kubernetes.forget, CONFIG_MAPS.path(namespace=namespace))
            async for page in pages:
                names += [item.metadata.name for item in page.items]
    assert names == [f"map-{index:06}" for index in range(59)]


@pytest.mark.timeout(200)
async def test_a_version_that_is_forgotten_is_expired(
    kubernetes: UpstreamCluster, namespace: str, judge: Judge
) -> None:
    path = CONFIG_MAPS.path(namespace=namespace)
    old = judge.post(path, {"metadata": {"name": "old"}})["metadata"]["resourceVersion"]
    kubernetes.forget_and_restart()
    exactly = {"resourceVersion": old, "resourceVersionMatch": "Exact"}
    async with connected(kubernetes.admin_kubeconfig()) as api:
        with pytest.raises(Expired):
            await api.list(CONFIG_MAPS, Selection(namespace, extra=exactly), type=ConfigMap)
        watch = api.watch(CONFIG_MAPS, Selection(namespace), resource_version=old)
        async with watch as events:
            with pytest.raises(Expired):
                await anext(aiter(events))

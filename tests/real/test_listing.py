"""Lists of a size that matters, and lists whose beginning the server has forgotten."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import uuid
from base64 import b64encode
from contextlib import aclosing
from typing import Any

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
_AT_ONCE = 100
"""Objects in a transaction of etcd, which takes 128."""
GROWTH_ALLOWED = 40
"""MiB. The whole list is above 80 MiB of JSON, and several times that as objects."""


def _create(kubernetes: UpstreamCluster, namespace: str, count: int) -> None:
    path = CONFIG_MAPS.path(namespace=namespace)

    def create(judge: Judge, index: int) -> None:
        judge.exchange("POST", path, {"metadata": {"name": f"map-{index:06}"}})

    everywhere(kubernetes, count, create)


def _store(kubernetes: UpstreamCluster, namespace: str, count: int, filling: str) -> None:
    """Straight into etcd, many at a time: the API server would take minutes to be told of each."""

    def put(name: str) -> dict[str, Any]:
        metadata = {"name": name, "namespace": namespace, "uid": str(uuid.uuid4())}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        key, value = f"/registry/configmaps/{namespace}/{name}", {**body, "data": {"f": filling}}
        pair = {"key": key.encode(), "value": json.dumps(value).encode()}
        return {"requestPut": {name: b64encode(part).decode() for name, part in pair.items()}}

    names = [f"map-{index:06}" for index in range(count)]
    with kubernetes.etcd() as etcd:
        for start in range(0, count, _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            etcd.post("/v3/kv/txn", {"success": [put(name) for name in some]})


@pytest.mark.timeout(900)
def test_twenty_thousand_objects_in_bounded_memory(
    kubernetes: UpstreamCluster, namespace: str
) -> None:
    _store(kubernetes, namespace, MANY, FILLING)
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

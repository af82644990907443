"""Two hosts to reach, one cluster a module."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.node_access.reach import Hosts, reach
from tests.hosts_cluster import HostsCluster


@pytest.fixture(scope="module")
def hosts_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostsCluster]:
    cluster = HostsCluster(tmp_path_factory.mktemp("hosts"))
    yield cluster
    cluster.close()


@pytest.fixture
async def api(hosts_cluster: HostsCluster) -> AsyncIterator[Api]:
    async with connect(hosts_cluster.access()) as api:
        yield api


@pytest.fixture
async def hosts(api: Api) -> Hosts:
    return await reach(api)

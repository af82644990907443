"""A cluster's API without anything behind it, and launchers of users on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from random import Random

import pytest

from kvestigate.client.api import Api
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.interface import AllowAll
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.model.user import AUTHENTICATED, MASTERS
from kvestigate.cluster.plane.model.user import User as PlaneUser
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.jobs.in_process import InProcess
from kvestigate.jobs.interface import Launcher
from kvestigate.jobs.remote.launcher import Remote
from kvestigate.jobs.server.serve import bound, serving
from kvestigate.jobs.users import User
from tests.static_tokens import StaticTokens

LauncherOf = Callable[[str], Launcher]


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    """A plane of its own: nothing happens on it that a test did not do."""
    async with Store(MemoryBackend()) as store:
        tokens = StaticTokens({digest("t"): PlaneUser("admin", (MASTERS, AUTHENTICATED))})
        server = ApiServer(store, tokens, AllowAll(), random=Random(1))
        yield Api(InProcessTransport(server.handle, headers=[("authorization", "Bearer t")]))


@pytest.fixture
async def url(api: Api) -> AsyncIterator[str]:
    """The launcher's server."""
    async with serving(api, bound("127.0.0.1", 0)) as url:
        yield url


@pytest.fixture(params=["in-process", "over-http"])
async def launcher_of(request: pytest.FixtureRequest, api: Api) -> AsyncIterator[LauncherOf]:
    """`launcher_of("jane")`, once in process and once through a server."""
    async with AsyncExitStack() as stack:
        if request.param == "in-process":
            yield lambda name: InProcess(api, User(name))
            return
        url = await stack.enter_async_context(serving(api, bound("127.0.0.1", 0)))
        made: dict[str, Remote] = {}

        def remote(name: str) -> Launcher:
            if name not in made:
                made[name] = Remote(url, User(name))
            return made[name]

        try:
            yield remote
        finally:
            for each in made.values():
                await each.__aexit__(None, None, None)

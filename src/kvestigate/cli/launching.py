"""Which launcher the commands use: this process, or the server of K8S_CLI_API_URL."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from kvestigate.cli.options import GlobalOptions

if TYPE_CHECKING:
    from kvestigate.jobs.in_process import InProcess
    from kvestigate.jobs.interface import Launcher

API_URL = "K8S_CLI_API_URL"


@asynccontextmanager
async def in_process(options: GlobalOptions) -> AsyncIterator[InProcess]:
    from kvestigate.cli.cluster import access_of
    from kvestigate.client.connect import connect
    from kvestigate.jobs.in_process import InProcess
    from kvestigate.jobs.remote.login import owner

    user = owner(os.environ)
    async with connect(access_of(options)) as api:
        yield InProcess(api, user)


@asynccontextmanager
async def launcher_of(options: GlobalOptions) -> AsyncIterator[Launcher]:
    url = os.environ.get(API_URL)
    if not url:
        async with in_process(options) as launcher:
            yield launcher
        return
    from kvestigate.jobs.remote.launcher import Remote
    from kvestigate.jobs.remote.login import logged_in, stored_token

    token = stored_token(os.environ)
    async with Remote(url, None if token else logged_in(os.environ), token) as remote:
        yield remote

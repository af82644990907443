"""Which launcher: the one of a server, or the one in this process, for a cluster."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.errors import UsageError
from kvestigate.jobs.in_process import InProcess
from kvestigate.jobs.interface import Launcher
from kvestigate.jobs.remote.launcher import Remote
from kvestigate.jobs.remote.login import API_URL, logged_in, owner, stored_token
from kvestigate.jobs.users import User


@asynccontextmanager
async def launcher(
    user: str = "", *, url: str = "", token: str = "", access: Access | None = None
) -> AsyncIterator[Launcher]:
    """Tasks and volumes of `user`: of the server at `url`, else of the cluster of `access`."""
    if url:
        async with Remote(url, User(user) if user else None, token) as remote:
            yield remote
    elif access is not None:
        async with connect(access) as api:
            yield InProcess(api, User(user))
    else:
        raise UsageError("neither a server nor a cluster", hint="give `url` or `access`")


def launcher_of(
    resolve: Callable[[], Access], user: str = ""
) -> AbstractAsyncContextManager[Launcher]:
    """What the environment says: the server of K8S_CLI_API_URL, else the cluster of `resolve`.

    Tasks and volumes are those of `user`, or of who is logged in.
    """
    url = os.environ.get(API_URL)
    if not url:
        return launcher(user or owner(os.environ).name, access=resolve())
    token = stored_token(os.environ)
    return launcher(user or ("" if token else logged_in(os.environ).name), url=url, token=token)

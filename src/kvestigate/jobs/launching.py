"""Which launcher: the one of a server, or the one in this process, for a cluster."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.errors import KvestigateError, NoCluster, UsageError
from kvestigate.http.message import Headers, Request
from kvestigate.http.pool import HttpClient
from kvestigate.jobs.in_process import InProcess
from kvestigate.jobs.interface import Launcher
from kvestigate.jobs.remote.launcher import Remote
from kvestigate.jobs.remote.login import API_URL, logged_in, owner, stored_token
from kvestigate.jobs.users import User

DEFAULT_URL = "http://localhost:8000"
"""Where `k8s-cli serve` listens if it is not told otherwise."""


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


@asynccontextmanager
async def launcher_of(resolve: Callable[[], Access], user: str = "") -> AsyncIterator[Launcher]:
    """What the environment says: the server of K8S_CLI_API_URL, else the cluster of `resolve`.

    Tasks and volumes are those of `user`, or of who is logged in.
    """
    url = os.environ.get(API_URL)
    if url:
        token = stored_token(os.environ)
        name = user or ("" if token else logged_in(os.environ).name)
        chosen = launcher(name, url=url, token=token)
    else:
        name = user or owner(os.environ).name
        try:
            chosen = launcher(name, access=resolve())
        except NoCluster as error:
            if await _answers(DEFAULT_URL):
                error.hint = f"a k8s-cli server answers there: export {API_URL}={DEFAULT_URL}"
            raise
    async with chosen as made:
        yield made


async def _answers(url: str) -> bool:
    """Whether a launcher's server is at `url`."""
    parts = urlsplit(url)
    client = HttpClient(host=parts.hostname or "", port=parts.port or 80, connect_timeout=1.0)
    try:
        incoming = await client.send(Request("GET", "/", "", Headers([]), b""), timeout=1.0)
        return b"k8s-cli-api" in await incoming.read(limit=1 << 16)
    except KvestigateError:
        return False
    finally:
        await client.aclose()

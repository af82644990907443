"""A console from start to stop."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from kvestigate.aio.supervisor import Supervisor
from kvestigate.client.access import Access, AccessOptions
from kvestigate.console.contexts import Contexts
from kvestigate.console.gate import SIGN_IN, TOKEN
from kvestigate.console.server import application
from kvestigate.console.sessions import Sessions
from kvestigate.errors import UsageError
from kvestigate.http import asgi
from kvestigate.http.hosts import is_loopback

_LISTEN = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^:\[\]]+)):(?P<port>[0-9]{1,5})")
_HIGHEST_PORT = 65535


def bound(listen: str) -> socket.socket:
    """A listening socket for `HOST:PORT`. Only on loopback: nobody else would be authenticated."""
    parts = _LISTEN.fullmatch(listen)
    if parts is None or int(parts["port"]) > _HIGHEST_PORT:
        raise UsageError(
            f"--listen: {listen!r} is not HOST:PORT", hint="write 127.0.0.1:8443 or [::1]:0"
        )
    host = parts["v6"] or parts["host"]
    if not is_loopback(host):
        raise UsageError(
            f"--listen: {host} is reachable from other machines, and the console acts with your "
            "own rights",
            hint="listen on 127.0.0.1, and forward the port: ssh -L 8080:127.0.0.1:8080 HOST",
        )
    return asgi.listening_socket(host, int(parts["port"]), "--listen")


async def serve(
    listening: socket.socket,
    names: Sequence[str],
    default: str,
    wanted: AccessOptions,
    resolve: Callable[[AccessOptions], Access],
    announce: Callable[[str], None],
    stopped: asyncio.Event,
    *,
    allow_writes: bool = False,
) -> None:
    """Serve until `stopped` is set; `announce` is told the URL for each browser."""
    root = asgi.url_of(listening)
    sessions = Sessions(lambda token: announce(_address(root, token)))
    async with AsyncExitStack() as stack, Supervisor("console") as tasks:
        contexts = Contexts(names, default, wanted, resolve, tasks, stack)
        app = application(contexts, sessions, allow_writes=allow_writes, closing=stopped)
        async with asgi.serving(app, listening):
            announce(_address(root, sessions.token))
            await stopped.wait()


def _address(root: str, token: str) -> str:
    return f"{root}{SIGN_IN}?{TOKEN}={token}"

"""A cyberspace in a thread of its own, for programs that block while they call it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import jsonschema_rs

from kvestigate.client.access import Access
from kvestigate.cybernet.serving import serve_http
from kvestigate_client import CybernetClient
from tests.cybernet.conftest import TOKENS, load


class CheckedClient(CybernetClient):
    """Finds every answer to be as the cyberspace says that it is."""

    def call(self, operation: str, parameters: Mapping[str, Any] | None = None) -> Any:
        result = super().call(operation, parameters)
        [schema] = [it["result"] for it in self.info()["operations"] if it["name"] == operation]
        jsonschema_rs.validate(schema, result)
        return result


class ServedSpace:
    """`with ServedSpace(document, access) as space:`"""

    def __init__(self, document: dict[str, Any], access: Access) -> None:
        self._loaded = load(document)
        self._access = access
        self._started: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self.url = ""

    def client(self, identity: str = "ada") -> CybernetClient:
        return CheckedClient(self.url, TOKENS[identity], timeout=60)

    def __enter__(self) -> ServedSpace:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        self.url, self._loop, self._stop = self._started.result(timeout=30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        await serve_http(
            self._loaded,
            self._access,
            stop,
            lambda url: self._started.set_result((url, loop, stop)),
        )

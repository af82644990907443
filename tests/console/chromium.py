"""A real Chromium, by the DevTools protocol: pages, keys, screenshots, and what went wrong in them.

The protocol is JSON over a WebSocket, so the tests need no driver beside the browser itself.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars",
    "--disable-default-apps", "--remote-debugging-port=0", "--remote-debugging-address=127.0.0.1",
)  # fmt: skip
_PATIENCE = 60.0
_ADDRESS = re.compile(rb"DevTools listening on (ws://\S+)")


class Browser:
    """One tab. What is wrong in its pages is kept: errors, refused loads, requests elsewhere."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loaded: set[str] = set()
        """Loaders whose page is complete."""
        self._news = asyncio.Event()
        self._session = ""
        self.errors: list[str] = []
        self.requests: list[str] = []

    async def read(self) -> None:
        async for message in self._socket:
            said = json.loads(message)
            if (number := said.get("id")) in self._waiting:
                self._waiting.pop(number).set_result(said)
            else:
                self._note(said.get("method", ""), said.get("params", {}))

    def _note(self, method: str, said: dict[str, Any]) -> None:
        match method:
            case "Page.lifecycleEvent" if said["name"] == "load":
                self._loaded.add(said["loaderId"])
                self._news.set()
            case "Network.requestWillBeSent":
                self.requests.append(said["request"]["url"])
            case "Log.entryAdded" if said["entry"]["level"] == "error":
                self.errors.append(said["entry"]["text"] + " " + said["entry"].get("url", ""))
            case "Runtime.exceptionThrown":
                self.errors.append(str(said["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if said["type"] in ("error", "warning"):
                self.errors.append(str(said["args"]))

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        answer = await self._answer(method, **parameters)
        assert "error" not in answer, (method, answer)
        result: dict[str, Any] = answer["result"]
        return result

    async def _answer(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        await self._socket.send(json.dumps(message))
        async with asyncio.timeout(_PATIENCE):
            return await self._waiting[number]

    async def open_tab(self) -> None:
        target = await self.call("Target.createTarget", url="about:blank")
        attached = await self.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.call(f"{domain}.enable")
        await self.call("Page.setLifecycleEventsEnabled", enabled=True)

    async def size(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def go(self, url: str) -> None:
        loader = (await self.call("Page.navigate", url=url))["loaderId"]
        async with asyncio.timeout(_PATIENCE):
            while loader not in self._loaded:  # the page before may end its loading just now
                self._news.clear()
                await self._news.wait()

    async def ask(self, expression: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until the expression is true in the page, also across navigations."""
        async with asyncio.timeout(_PATIENCE):
            while True:
                # A page that is being left answers with an error: then the next one is asked.
                answer = await self._answer(
                    "Runtime.evaluate", expression=f"!!({expression})", returnByValue=True
                )
                if answer.get("result", {}).get("result", {}).get("value"):
                    return
                await asyncio.sleep(self._pause)

    _pause = 0.02

    async def press(self, *keys: str) -> None:
        for key in keys:
            text = {"text": key} if len(key) == 1 else {}
            await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def screenshot(self, path: Path) -> None:
        image = await self.call("Page.captureScreenshot", format="png")
        await asyncio.to_thread(path.write_bytes, base64.b64decode(image["data"]))

    async def heap_bytes(self) -> int:
        return int((await self.call("Runtime.getHeapUsage"))["usedSize"])


@asynccontextmanager
async def chromium(profile: Path) -> AsyncIterator[Browser]:
    """A browser of its own, with an empty profile."""
    assert BROWSER is not None
    process = await asyncio.create_subprocess_exec(
        BROWSER, *_FLAGS, f"--user-data-dir={profile}", "about:blank",
        stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        async with asyncio.timeout(_PATIENCE):
            while (found := _ADDRESS.search(line := await process.stderr.readline())) is None:
                assert line, "the browser ended"
        async with connect(found[1].decode(), max_size=None) as socket:
            browser = Browser(socket)
            reading = asyncio.ensure_future(browser.read())
            try:
                await browser.open_tab()
                yield browser
            finally:
                reading.cancel()
                await asyncio.wait({reading})
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()

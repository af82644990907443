"""Every page in a real browser: nothing fails, nobody else is asked, everybody can read it."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.console.chromium import BROWSER, Browser, chromium
from tests.console.served import FLEET, PAGES, ServedConsole, kvestigate, scenarios

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed"),
    pytest.mark.timeout(300),
]

AXE = Path(__file__).parent / "third_party" / "axe.min.js"
SHOTS = os.environ.get("KVESTIGATE_SCREENSHOTS", "")
"""Where pictures of all pages are kept, if anywhere."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("home")
    with scenarios(directory):
        yield directory


@pytest.fixture(scope="module")
def console(home: Path) -> Iterator[ServedConsole]:
    with ServedConsole(home, "--allow-writes") as served:
        yield served


@pytest.fixture
async def browser(console: ServedConsole, tmp_path: Path) -> AsyncIterator[Browser]:
    """One that is signed in."""
    async with chromium(tmp_path / "profile") as opened:
        await opened.size(1280)
        await opened.go(console.sign_in)
        await opened.until("location.pathname === '/' && document.querySelector('#overview')")
        yield opened


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (820, False)])
async def test_every_page_is_whole(
    browser: Browser, console: ServedConsole, width: int, dark: bool, tmp_path: Path
) -> None:
    await browser.size(width, 1180 if width < 1000 else 900, dark=dark)
    kept = Path(SHOTS) if SHOTS else tmp_path
    problems: dict[str, object] = {}
    for name, path in PAGES.items():
        await browser.go(console.origin + path)
        await browser.until("!document.querySelector('meta[http-equiv=refresh]')")
        look = "dark" if dark else "light"
        await browser.screenshot(kept / f"{name}-{look}-{width}.png")
        wide = await browser.ask("document.documentElement.scrollWidth - innerWidth")
        if wide > 0:
            problems[f"{name} sticks out"] = wide
        if width > 1000 and AXE.exists() and (found := await _violations(browser)):
            problems[f"{name} is hard to use"] = found
    assert problems == {}
    assert browser.errors == []
    assert {url for url in browser.requests if not url.startswith(console.origin)} <= {
        "about:blank"
    }


async def _violations(browser: Browser) -> list[str]:
    """What axe-core finds serious or critical."""
    await browser.ask(AXE.read_text() + ";0")
    found = await browser.ask(
        "axe.run(document, {resultTypes: ['violations']}).then((all) => JSON.stringify("
        "all.violations.filter((one) => ['serious', 'critical'].includes(one.impact))"
        ".map((one) => one.id + ': ' + one.nodes.slice(0, 3).map((at) => at.html).join(' | '))))"
    )
    violations: list[str] = json.loads(found)
    return violations


async def test_a_change_is_seen_without_a_reload(
    browser: Browser, console: ServedConsole, home: Path
) -> None:
    await browser.go(f"{console.origin}/explore/namespaces?context={FLEET}")
    await browser.until("document.querySelector('#liveness').textContent === 'live'")
    await browser.ask("window.here = true; 0")
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "made-meanwhile"}}
    (home / "made.json").write_text(json.dumps(manifest))
    flags = ("--apply", "--i-understand-this-modifies-cluster")
    kvestigate(home, "--context", FLEET, "deploy", str(home / "made.json"), *flags)
    await browser.until("document.querySelector('tr[data-row=\"/made-meanwhile\"]')")
    assert await browser.ask("window.here === true")


async def test_a_filter_works_as_one_types_and_with_the_keyboard(
    browser: Browser, console: ServedConsole
) -> None:
    await browser.go(f"{console.origin}/explore/pods?context={FLEET}")
    await browser.press("/", *"gpu-exp")
    await browser.until("document.querySelectorAll('tr[data-row]').length === 1")
    assert "q=gpu-exp" in await browser.ask("location.search")
    await browser.press("Escape", "j")
    await browser.until("document.activeElement.textContent.startsWith('gpu-exporter')")
    await browser.press("?")
    assert await browser.ask("document.querySelector('#help').open")


_HOSTILE = b"""<!doctype html><title>hostile</title><iframe id="frame" src="%(origin)s/"></iframe>
<form id="form" method="post" target="sink" action="%(origin)s/act/node.cordon">
<input name="node" value="node-01"><input name="context" value="%(context)s">
<input name="confirmation" value="i-understand-this-modifies-cluster"><input name="plan" value="x">
</form><iframe name="sink"></iframe><script>
const tries = {};
const attempt = async (name, work) => {
  try { tries[name] = String(await work()); } catch (error) { tries[name] = "refused"; }
};
(async () => {
  for (const mode of ["cors", "no-cors"]) {
    await attempt("read " + mode, async () =>
      (await (await fetch("%(origin)s/explore/secrets", {mode, credentials: "include"})).text()));
  }
  await attempt("script", () => new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = "%(origin)s/static/console.js"; script.onload = () => done("loaded");
    script.onerror = failed; document.body.append(script);
  }));
  await attempt("frame", () => document.getElementById("frame").contentDocument.body.innerHTML);
  await attempt("events", () => new Promise((done, failed) => {
    const events = new EventSource("%(origin)s/events/overview", {withCredentials: true});
    events.onopen = () => done("opened"); events.onerror = failed;
  }));
  document.getElementById("form").submit();
  document.title = "done"; document.tries = tries;
})();
</script>"""


@pytest.fixture
def hostile(console: ServedConsole) -> Iterator[str]:
    """A page on another port of this machine: the same site to browsers, and so the worst case."""
    values = {b"origin": console.origin.encode(), b"context": FLEET.encode()}

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(_HOSTILE % values)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


async def test_a_hostile_page_in_the_same_browser_gets_nothing(
    browser: Browser, hostile: str, home: Path
) -> None:
    await browser.go(hostile)
    await browser.until("document.title === 'done'")
    tries = await browser.ask("document.tries")
    assert {name: what for name, what in tries.items() if what not in ("refused", "")} == {}
    await asyncio.to_thread(_check_not_cordoned, home)


def _check_not_cordoned(home: Path) -> None:
    described = kvestigate(home, "--context", FLEET, "describe", "node", "node-01", "-o", "json")
    assert ["schedulable", "yes"] in json.loads(described)["facts"]


async def test_it_is_all_there_without_scripts(browser: Browser, console: ServedConsole) -> None:
    await browser.call("Emulation.setScriptExecutionDisabled", value=True)
    for name, path in PAGES.items():
        await browser.go(console.origin + path)
        await browser.call("Emulation.setScriptExecutionDisabled", value=True)
        document = await browser.call("DOM.getDocument", depth=-1)
        text = json.dumps(document)
        assert '"MAIN"' in text, name
        assert "Context" in text

"""`make screenshots`: the pictures of docs/console.md, from a GPU fleet started for them."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from tests.console.chromium import chromium
from tests.console.served import PAGES, ServedConsole, scenarios

IMAGES = Path(__file__).parents[2] / "docs" / "images"


async def _take(console: ServedConsole, home: Path) -> None:
    async with chromium(home / "profile") as browser:
        await browser.size(1280, 800)
        await browser.go(console.sign_in)
        await browser.until("document.querySelector('#overview')")
        for name in ("overview", "explore", "plan"):
            await browser.go(console.origin + PAGES[name])
            await browser.until("!document.querySelector('meta[http-equiv=refresh]')")
            await browser.screenshot(IMAGES / f"console-{name}.png")


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        with scenarios(home), ServedConsole(home) as console:
            asyncio.run(_take(console, home))


if __name__ == "__main__":
    main()

"""The page in a real browser: it lays out on a desk and on a phone, light and dark."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from kvestigate.health.audit import examine
from kvestigate.health.page import to_page
from kvestigate.snapshot import listings
from tests.health.snapshots import Object, named, snapshot
from tests.snapshot.objects import container, node, pod

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")

WIDTHS = {"desk": 1280, "phone": 390}

# What the page itself may not do, the frames around it can: look at the page, and say so.
_PROBE = """<!doctype html><title>probe</title><pre id="said"></pre><script>
const page = %(page)s, widths = %(widths)s, said = {};
const look = (frame, width) => {
  const inside = frame.contentDocument, style = frame.contentWindow.getComputedStyle;
  const wide = [...inside.querySelectorAll("body > *")].filter(
    (it) => it.getBoundingClientRect().right > width + 1).map((it) => it.className);
  return {
    scroll: inside.documentElement.scrollWidth,
    wide,
    bars: inside.querySelectorAll("svg rect").length,
    headings: [...inside.querySelectorAll("h2")].map((it) => it.textContent),
    dark: frame.contentWindow.matchMedia("(prefers-color-scheme: dark)").matches,
    bad: style(inside.querySelector(".bad")).color,
    scripts: inside.scripts.length,
  };
};
for (const [place, width] of Object.entries(widths)) {
  const frame = document.createElement("iframe");
  frame.style.border = 0;
  frame.width = width; frame.height = 2000;
  frame.srcdoc = page;
  frame.onload = () => {
    said[place] = look(frame, width);
    document.getElementById("said").textContent = JSON.stringify(said);
  };
  document.body.append(frame);
}
</script>"""


def page() -> str:
    long_name = "a-service-with-a-name-that-is-as-long-as-names-may-be-in-kubernetes"
    given: dict[Any, list[Object]] = {
        listings.NODES: [node(f"node-{it:03}", cpu="4", memory="8Gi", gpu="8") for it in range(30)],
        listings.PODS: [pod("p", container(cpu="6", gpu="3"), on="node-000")],
        listings.SERVICES: [named(long_name, spec={"selector": {"app": "x" * 200}})],
    }
    return to_page(examine(snapshot(given), "https://x.test"))


def seen(directory: Path, *, dark: bool) -> dict[str, Any]:
    """By place. One browser looks at all widths: to start it takes longer than to look."""
    probe = directory / "probe.html"
    written = json.dumps(page()).replace("</", "<\\/")
    probe.write_text(_PROBE % {"widths": json.dumps(WIDTHS), "page": written})
    scheme = ["--force-dark-mode"] if dark else []
    done = subprocess.run(
        [
            str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--user-data-dir={directory}/profile", "--virtual-time-budget=5000",
            *scheme, "--dump-dom", probe.as_uri(),
        ],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    said = re.search(r'<pre id="said">(.+?)</pre>', done.stdout)
    assert said is not None, done.stdout[-2000:]
    found: dict[str, Any] = json.loads(unescape(said[1]))
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_sticks_out_and_everything_is_there(tmp_path: Path, dark: bool) -> None:
    places = seen(tmp_path, dark=dark)
    assert places.keys() == WIDTHS.keys()
    for place, found in places.items():
        assert (place, found["wide"], found["scroll"]) == (place, [], WIDTHS[place])
        assert found["scripts"] == 0
        assert found["bars"] >= 30 * 8
        assert found["headings"][:3] == ["Findings", "Allocation per node", "GPU map"]
        assert found["dark"] is dark
        assert found["bad"] == ("rgb(255, 123, 114)" if dark else "rgb(207, 34, 46)")

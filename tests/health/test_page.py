"""The page is whole, safe, and shows what was found."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any

import pytest

from kvestigate.health.audit import examine
from kvestigate.health.page import to_page
from kvestigate.snapshot import listings
from kvestigate.snapshot.exporters import GpuReading
from tests.health.snapshots import Object, named, snapshot
from tests.snapshot.objects import container, node, pod

VOID = {"meta", "br", "link", "img"}
EVIL = '<script>alert("x")</script>'


class Outline(HTMLParser):
    """Elements opened and closed, and where the page would load something from."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: Counter[str] = Counter()
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen[tag] += 1
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def page() -> str:
    given: dict[Any, list[Object]] = {
        listings.NODES: [node("n", cpu="4", memory="8Gi", gpu="4"), node("m", cpu="4")],
        listings.PODS: [pod("p", container(cpu="6", gpu="3"), on="n")],
        listings.SERVICES: [named(EVIL, spec={"selector": {"app": EVIL}})],
    }
    return to_page(examine(snapshot(given), "https://x.test"))


def test_it_is_well_formed_and_loads_nothing(page: str) -> None:
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    assert all(it.startswith("#") for it in outline.loads)
    assert outline.seen["script"] == 0
    assert "url(" not in page
    assert EVIL not in page
    assert "&lt;script&gt;" in page


def test_it_shows_findings_bars_and_gpus(page: str) -> None:
    assert 'class="finding critical"' in page
    assert "No pod matches the selector" in page
    assert 'aria-label="3 of 4 allocated"' in page
    gpus = page[page.index("GPU map") : page.index('<h2 id="nodes"')]
    assert Counter(re.findall(r'rect class="(\w+)"', gpus)) == {"used": 3, "free": 1}
    assert 'class="over" width="100.0"' in page  # six cores asked for of four


def test_squares_show_what_gpus_do_where_figures_tell() -> None:
    readings = [
        GpuReading("GPU-0", "n", "0", 97, "ml", EVIL, "main", 2048),
        GpuReading("GPU-1", "n", "1", 0, "ml", "b", "main", 2048),
        GpuReading("GPU-2", "n", "2", 0, "", "", "", 2048),
        GpuReading("GPU-3", "n", "3", 0, "", "", "", 4),
    ]
    pods = [pod(name, container(gpu="1"), on="n") for name in ("a", "b")]
    given: dict[Any, list[Any]] = {
        listings.NODES: [node("n", gpu="4"), node("m", gpu="2")],
        listings.PODS: pods,
        listings.GPU_READINGS: readings,
    }
    page = to_page(examine(snapshot(given), "https://x.test"))
    gpus = page[page.index("GPU map") : page.index('<h2 id="nodes"')]
    table, _, legend = gpus.partition("</table>")
    kinds = re.findall(r'rect class="(\w+)"', table)
    assert kinds == ["free", "free", "used", "idle", "over", "free"]
    assert 'aria-label="2 of 4 allocated, 1 busy"' in table
    assert "GPU 1, 0 %, 2.0 GiB in use, ml/b/main" in table
    assert "allocated, idle" in legend
    assert EVIL not in page
    outline = Outline()
    outline.feed(page)
    assert outline.open == []


def test_what_was_not_seen_is_not_called_empty() -> None:
    page = to_page(examine(snapshot({}, denied=[listings.NODES, listings.PODS]), "https://x.test"))
    nodes = page.partition('<h2 id="nodes">')[2].partition("<h2")[0]
    assert "Listing nodes is forbidden" in nodes
    assert "no nodes" not in nodes


def test_an_empty_cluster_has_a_page_too() -> None:
    words = to_page(examine(snapshot(), "https://x.test"))
    assert "No problems found" in words
    assert "GPU map" not in words

"""Clusters and a console as users start them, and the pages that there are to see."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.upstream.processes import Process

_PROGRAM = "from kvestigate.cli.main import kvestigate; kvestigate()"
FLEET, SHOP = "kvestigate-fleet", "kvestigate-shop"

PAGES = {
    "overview": f"/?context={FLEET}",
    "overview-shop": f"/?context={SHOP}",
    "explore": f"/explore/pods?context={FLEET}&q=prd-r6000",
    "kinds": f"/explore?context={FLEET}",
    "nodes": f"/explore/nodes?context={FLEET}",
    "events": f"/explore/events?context={SHOP}",
    "object": f"/object/deployments.apps/shop/orders?context={SHOP}",
    "yaml": f"/object/deployments.apps/shop/orders/yaml?context={SHOP}",
    "why": f"/object/deployments.apps/shop/orders/why?context={SHOP}",
    "logs": f"/object/deployments.apps/shop/orders/logs?context={SHOP}",
    "plan": f"/plan?context={FLEET}&gpu=2&replicas=5",
    "plan-too-large": f"/plan?context={FLEET}&gpu=8&replicas=2",
    "jobs": f"/jobs?context={FLEET}",
    "hosts": f"/hosts?context={FLEET}",
    "planes": f"/planes?context={FLEET}",
    "operations": f"/operations?context={FLEET}",
    "drain": f"/act/node.drain?context={FLEET}&node=node-02",
}
"""Name -> address."""


def environment(home: Path) -> dict[str, str]:
    """Nothing of the developer's own is in reach."""
    return {"PATH": os.environ["PATH"], "HOME": str(home)}


def kvestigate(home: Path, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *args],
        env=environment(home), capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return done.stdout


@contextmanager
def scenarios(home: Path) -> Iterator[None]:
    """A GPU fleet and a broken shop."""
    names = {"fleet": "gpu-fleet", "shop": "broken-app"}
    try:
        for name, scenario in names.items():
            kvestigate(home, "up", "--name", name, "--scenario", scenario)
        yield
    finally:
        for name in names:
            kvestigate(home, "down", "--name", name, "--delete")


class ServedConsole:
    """`with ServedConsole(home) as console:`, which is `kvestigate ui` in a process of its own."""

    def __init__(self, home: Path, *options: str) -> None:
        self._log = home / "ui.log"
        words = [sys.executable, "-c", _PROGRAM, "ui", "--no-browser", *options]
        variables = [f"{name}={value}" for name, value in environment(home).items()]
        self._process = Process("ui", ["/usr/bin/env", "-i", *variables, *words], self._log)

    def __enter__(self) -> ServedConsole:
        self._process.start(lambda: "token=" in self._process.tail())
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def sign_in(self) -> str:
        """The address for the next browser."""
        found: list[str] = re.findall(r"http://\S+token=\S+", self._log.read_text())
        return found[-1]

    @property
    def origin(self) -> str:
        return self.sign_in.partition("/sign-in")[0]

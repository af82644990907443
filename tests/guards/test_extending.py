"""The worked examples of docs/extending.md, put into a copy of the package and used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.guards.conftest import FILE, LINES, PAGE, ROOT

USE = """
from datetime import UTC, datetime
import msgspec
from kvestigate.kube.views.core import Node
from kvestigate.snapshot import listings
from kvestigate.planning.plan import PlanOptions, demand_of, solved
from kvestigate.health.audit import NEEDS, examine
from kvestigate.snapshot.model import Snapshot

def node(name, **labels):
    return msgspec.convert({
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": "z", **labels}},
        "status": {"allocatable": {"cpu": "2", "pods": "10"},
                   "conditions": [{"type": "Ready", "status": "True"}]},
    }, Node)

nodes = (node("b"), node("a"), node("v", type="virtual-kubelet"))
now = datetime(2030, 1, 1, tzinfo=UTC)
audit = examine(Snapshot(now, {it: nodes if it is listings.NODES else () for it in NEEDS}), "x")
print(audit.reports["zones"].ready, [it.evidence for it in audit.findings])
few = demand_of(PlanOptions(cpu="1", replicas=3), "default")
plan = solved(few, nodes, (), when=now, server="")
print({it.strategy: it.placement for it in plan.proposals}["alphabetical"])
print([it.barred for it in plan.nodes])
more = demand_of(PlanOptions(cpu="1", replicas=5), "default")
print(solved(more, nodes, (), when=now, server="").ways_out)
"""


def _ran(home: Path, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, *args],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"PYTHONPATH": str(home / "src"), "HOME": str(home), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_kind_of_extension_has_an_example() -> None:
    assert len(FILE.findall(PAGE)) == len(LINES.findall(PAGE)) == 5


def test_what_was_added_works(extended: Path) -> None:
    assert _ran(extended, "-c", USE).splitlines() == [
        "{'z': 3} ['All 3 nodes are in zone z.']",
        "{'a': 2, 'b': 1}",
        "['', '', 'virtual']",
        "('1 more replica would fit if virtual nodes may be used.',)",
    ]


def test_a_new_report_is_listed(extended: Path) -> None:
    assert "zones" in _ran(extended, "-m", "kvestigate", "report", "list")


def test_the_examples_are_tidy(extended: Path) -> None:
    added = [str(extended / path) for path, _ in FILE.findall(PAGE)]
    config = str(ROOT / "pyproject.toml")
    _ran(extended, "-m", "ruff", "check", "--no-cache", "--config", config, *added)
    _ran(extended, "-m", "ruff", "format", "--no-cache", "--config", config, "--check", *added)

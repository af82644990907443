"""What may not be read is unknown, never 0: every figure of an audit, for many kinds of users.

The figures of a user who may read everything are compared with a computation from the objects
themselves (`test_scenarios.py`). Here a user with fewer rights must see the same figures or none.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from kvestigate.health.audit import NEEDS, examine
from kvestigate.health.page import to_page
from kvestigate.health.rendering import audit_blocks
from kvestigate.render.encode import to_json
from kvestigate.render.plain import to_text
from kvestigate.snapshot import listings
from kvestigate.snapshot.source import Listing, Source
from tests.health.snapshots import named, snapshot
from tests.snapshot.objects import container, node, pod

PORT = {"port": 80, "targetPort": 80}
OBJECTS: dict[Source[Any], list[Any]] = {
    listings.NODES: [node("n1", cpu="8", memory="16Gi", pods="110", gpu="4"), node("n2", cpu="8")],
    listings.PODS: [
        pod("web", container(cpu="1", gpu="2"), on="n1"),
        pod("late", container(gpu="8"), phase="Pending"),
    ],
    listings.DEVICE_SLICES: [
        {
            "metadata": {"name": "s"},
            "spec": {
                "driver": "gpu.nvidia.com",
                "pool": {"name": "n2"},
                "nodeName": "n2",
                "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
            },
        }
    ],
    listings.RESOURCE_CLAIMS: [
        named(
            "c",
            status={
                "allocation": {
                    "devices": {
                        "results": [{"driver": "gpu.nvidia.com", "pool": "n2", "device": "gpu-1"}]
                    }
                }
            },
        ),
        named("late", spec={"devices": {"requests": [{"exactly": {"deviceClassName": "gpu.x"}}]}}),
    ],
    listings.DEVICE_CLASSES: [{"metadata": {"name": "gpu.x"}}],
    listings.DEPLOYMENTS: [named("web", spec={"replicas": 2}, status={"readyReplicas": 1})],
    listings.STATEFUL_SETS: [named("db", spec={"replicas": 1}, status={"readyReplicas": 1})],
    listings.SERVICES: [named("web", spec={"selector": {"app": "web"}, "ports": [PORT]})],
    listings.ENDPOINT_SLICES: [
        named(
            "web-1",
            labels={"kubernetes.io/service-name": "web"},
            endpoints=[{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}],
        )
    ],
    listings.NETWORK_POLICIES: [named("all", spec={"podSelector": {}})],
    listings.CLAIMS: [named("data", spec={"volumeName": "v"}, status={"phase": "Bound"})],
    listings.VOLUMES: [
        {
            "metadata": {"name": "v"},
            "spec": {"capacity": {"storage": "1Gi"}, "storageClassName": "fast"},
            "status": {"phase": "Bound"},
        }
    ],
    listings.STORAGE_CLASSES: [{"metadata": {"name": "fast"}, "provisioner": "x"}],
}
KINDS = [source for source in NEEDS if isinstance(source, Listing)]


def denials() -> list[tuple[Source[Any], ...]]:
    """Nothing, each kind of the reports alone, everything, and 30 mixtures."""
    random = Random(19)
    mixtures = [tuple(random.sample(KINDS, random.randint(2, len(KINDS)))) for _ in range(30)]
    return [(), *((kind,) for kind in OBJECTS), tuple(KINDS), *mixtures]


def figures(denied: tuple[Source[Any], ...]) -> Any:
    given = {kind: objects for kind, objects in OBJECTS.items() if kind not in denied}
    seen = snapshot(given, denied=denied)
    return json.loads(to_json(examine(seen, "https://x.test")))["reports"]


EVERYTHING = figures(())


def false_figures(part: Any, whole: Any, path: str = "") -> list[str]:
    """Where `part` says something else than `whole`; None says nothing."""
    if part is None or part == whole:
        return []
    if isinstance(part, dict) and isinstance(whole, dict):
        return [
            wrong
            for key in part
            for wrong in false_figures(part[key], whole.get(key), f"{path}.{key}")
        ]
    if isinstance(part, list) and isinstance(whole, list) and part:
        rows = {_identity(row): row for row in whole}
        return [
            wrong
            for row in part
            for wrong in false_figures(row, rows.get(_identity(row)), f"{path}[{_identity(row)}]")
        ]
    return [f"{path}: {part!r} instead of {whole!r}"]


def _identity(row: Any) -> str:
    keys = ("kind", "namespace", "name", "node", "pod", "container", "uuid", "host", "path")
    return "/".join(str(row[key]) for key in keys if key in row) if isinstance(row, dict) else row


@pytest.mark.parametrize("denied", denials(), ids=lambda denied: "+".join(it.name for it in denied))
def test_a_figure_is_right_or_unknown(denied: tuple[Source[Any], ...]) -> None:
    assert false_figures(figures(denied), EVERYTHING) == []


def test_nothing_reads_like_zero_when_nothing_was_read() -> None:
    audit = examine(snapshot({}, denied=KINDS), "https://x.test")
    shown = to_text(audit_blocks(audit))
    assert "No check could run" in shown or "in what could be read" in shown
    for claim in ("no nodes", "no GPUs", "no Services", " 0 of ", "0 %", "0/0"):
        assert claim not in shown, shown
    assert "unknown" in to_page(audit)

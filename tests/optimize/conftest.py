"""Fleets as the optimizer knows them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from kvestigate.optimize.model import Fleet, GpuNode, GpuPod, largest_first

GPU = "nvidia.com/gpu"
WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
AUDIT = Path(__file__).parents[2] / "examples" / "cluster.audit.json"


def node(
    name: str,
    pods: Sequence[int] = (),
    *,
    capacity: int = 8,
    model: str = "H100",
    closed: str = "",
    namespace: str = "ml",
) -> GpuNode:
    """With one pod of each of these sizes, called `NODE-0` and so on."""
    given = [GpuPod(namespace, f"{name}-{at}", {GPU: size}) for at, size in enumerate(pods)]
    return GpuNode(
        name,
        model,
        {GPU: capacity},
        {GPU: sum(pods)},
        tuple(sorted(given, key=largest_first)),
        closed,
    )


def fleet(*nodes: GpuNode) -> Fleet:
    return Fleet(WHEN, "https://test", tuple(sorted(nodes, key=lambda it: it.name)))

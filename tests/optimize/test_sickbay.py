"""What `optimize health` says of GPUs that were asked, or could not be."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kvestigate.optimize.sickbay import GpuHealth, health_blocks
from kvestigate.render.plain import to_text


@pytest.mark.parametrize(
    ("checked", "nodes", "unknown", "said"),
    [
        (0, 0, {}, "no node has GPUs\n"),
        (8, 1, {}, "no problems found on 8 GPUs on 1 node\n"),
        (0, 1, {"a": "it is down"}, "GPUs of a: unknown (it is down)\n"),
    ],
)
def test_health_without_sick_gpus(
    checked: int, nodes: int, unknown: dict[str, str], said: str
) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    health = GpuHealth(
        captured_at=now, server="test", checked=checked, nodes=nodes, sick=(), unknown=unknown
    )
    assert to_text(health_blocks(health)) == said

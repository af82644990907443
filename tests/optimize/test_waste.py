"""The table of `optimize waste` fits a terminal of 80 columns."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from kvestigate.optimize.waste import Waste
from kvestigate.optimize.waste_rendering import waste_blocks
from kvestigate.render.blocks import Table
from kvestigate.render.terminal import to_terminal
from kvestigate.snapshot.ledger.spending import NOTHING, Group, Spend, Spending

NOW = datetime(2030, 1, 1, 9, 30, tzinfo=UTC)


def test_long_names_and_large_amounts_fit_80_columns() -> None:
    held, idle = Spend(16, 21038.4), Spend(13, 17093.7)
    name = "prd-r6000-nest/StatefulSet model-multi-1-otel-llm"
    group = Group(name, 16, {"GPU": 16}, held, idle, NOTHING, NOW, 1_102_974.0)
    spending = Spending(
        "prices", "USD", "workload", held, held, idle, NOTHING, NOTHING, groups=(group,)
    )
    waste = Waste(captured_at=NOW, server="test", spending=spending, served=0)
    tables = [block for block in waste_blocks(waste) if isinstance(block, Table)]
    shown = re.sub(r"\x1b\[[0-9;]*m", "", to_terminal(tables, width=80))
    assert max(map(len, shown.splitlines())) <= 80
    first = next(line for line in shown.splitlines() if "StatefulSet" in line)
    assert first.split()[1:] == ["13", "of", "16", "1.1", "TiB", "2030-01-01", "unknown", "17,094"]

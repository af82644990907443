"""What the page of plans says is what `plan` says."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kvestigate.console.planning import answer
from kvestigate.planning.plan import PlanOptions, demand_of, solved
from tests.snapshot.objects import as_node, node


@pytest.mark.parametrize("gpus", [1, 9])
def test_the_notes_of_a_plan_are_shown_whether_it_fits_or_not(gpus: int) -> None:
    nodes = [as_node(node("a", cpu="8", memory="32Gi", pods="110", gpu="4"))]
    demand = demand_of(PlanOptions(gpu=gpus), "default")
    now = datetime(2030, 1, 1, tzinfo=UTC)
    plan = solved(demand, nodes, [], when=now, server="test", unknown_health=True)
    assert plan.fits == (gpus == 1)
    assert plan.notes
    assert all(note in str(answer(plan)) for note in plan.notes)

"""Every fault of the bank is named with its cause, and nothing is said of what is healthy."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from kvestigate.client.api import Api
from kvestigate.cluster.assembly.directory import Shape
from kvestigate.health.audit import NEEDS
from kvestigate.health.registry import RULES, findings
from kvestigate.snapshot.collect import take
from kvestigate.snapshot.model import Snapshot
from tests.cluster.assembly.conftest import cluster
from tests.health.planting import Case, alarms, cases, is_told, plant

LATER = timedelta(minutes=20)
"""What has not changed in this time will not change by itself."""
PATIENCE = 180.0


async def seen(api: Api) -> Snapshot:
    """As if somebody looked a while later."""
    snapshot = await take(api, NEEDS)
    return replace(snapshot, captured_at=snapshot.captured_at + LATER)


def _alarms(bank: Sequence[Case], snapshot: Snapshot) -> dict[str, list[str]]:
    """What is said of healthy cases."""
    by_default = findings(snapshot)
    healthy = {case.name: alarms(case, by_default) for case in bank if case.healthy}
    return {name: lines for name, lines in healthy.items() if lines}


@pytest.mark.workflow
@pytest.mark.timeout(400)
async def test_every_fault_is_named_with_its_cause(tmp_path: Path) -> None:
    bank = list(cases())
    faults = [case for case in bank if not case.healthy]
    async with cluster(tmp_path, Shape(nodes=3)) as api:
        for case in bank:
            await plant(api, case)
        missed: list[Case] = faults
        snapshot = await seen(api)
        try:
            async with asyncio.timeout(PATIENCE):
                # What is healthy may take a while to start.
                while missed or _alarms(bank, snapshot):
                    snapshot = await seen(api)
                    everything = findings(snapshot, RULES)
                    missed = [case for case in faults if not is_told(case, everything)]
        except TimeoutError:
            pass
    said = _alarms(bank, snapshot)
    print(f"\n{len(faults) - len(missed)} of {len(faults)} faults told, {len(said)} false alarms")
    assert not missed, [f"{case.topic}/{case.name}" for case in missed]
    assert not said

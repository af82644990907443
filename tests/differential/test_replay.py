"""Every script on a plane, compared with what the real server answered."""

from __future__ import annotations

import pytest

from tests.differential import golden
from tests.differential.comparing import differences, listed
from tests.differential.running import run
from tests.differential.script import Script, scripts
from tests.differential.server import plane_server

GAPS = golden.gaps()


@pytest.mark.parametrize("script", [pytest.param(each, id=each.id) for each in scripts()])
async def test_a_plane_answers_like_the_real_server(script: Script) -> None:
    real = golden.read(script.topic)[script.name]
    async with plane_server() as server:
        ours = await run(script, server)
    found = differences(script, real, ours)
    for step in range(1, len(script.steps) + 1):
        name = golden.gap(script.id, step)
        assert step in found or name not in GAPS, f"{name} passes: take it off known_gaps.txt"
    new = {step: lines for step, lines in found.items() if golden.gap(script.id, step) not in GAPS}
    if new:
        pytest.fail(listed(new), pytrace=False)


def test_every_gap_is_a_step_of_a_script() -> None:
    steps = {
        golden.gap(script.id, step)
        for script in scripts()
        for step in range(1, len(script.steps) + 1)
    }
    assert set(GAPS) <= steps


def test_every_gap_has_a_reason() -> None:
    assert all(GAPS.values())


def test_names_are_unique() -> None:
    ids = [script.id for script in scripts()]
    assert len(ids) == len(set(ids))

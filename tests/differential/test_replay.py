"""Every script on a plane, compared with what the real server answered."""

from __future__ import annotations

import pytest

from tests.differential import golden
from tests.differential.comparing import differences
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
    if script.id in GAPS:
        assert found, f"{script.id} passes: take it off known_gaps.txt"
    elif found:
        pytest.fail("\n".join(found), pytrace=False)


def test_every_gap_is_a_script() -> None:
    assert set(GAPS) <= {script.id for script in scripts()}


def test_names_are_unique() -> None:
    ids = [script.id for script in scripts()]
    assert len(ids) == len(set(ids))

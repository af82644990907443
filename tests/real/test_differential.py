"""The golden answers are what the real server says today."""

from __future__ import annotations

import ssl

import pytest

from tests.differential import golden
from tests.differential.comparing import differences, listed
from tests.differential.running import run
from tests.differential.script import Script, scripts
from tests.differential.server import RealServer
from tests.upstream.cluster import UpstreamCluster


@pytest.mark.parametrize("script", [pytest.param(each, id=each.id) for each in scripts()])
async def test_golden_answers_are_the_real_ones(
    script: Script, kubernetes: UpstreamCluster
) -> None:
    context = ssl.create_default_context(cafile=str(kubernetes.ca_file))
    answers = await run(script, RealServer(kubernetes.port, context))
    found = differences(script, golden.read(script.topic)[script.name], answers)
    if found:
        pytest.fail(listed(found), pytrace=False)

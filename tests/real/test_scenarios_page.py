"""What docs/scenarios.md shows of a cluster is what kubectl says there."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest

from kvestigate.cluster.assembly.directory import ClusterDirectory
from tests.cluster.assembly.conftest import all_running, until_pods
from tests.cluster.assembly.test_claimed_gpus import scenario
from tests.upstream import binaries

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

PAGE = Path(__file__).parents[2] / "docs" / "scenarios.md"
BLOCK = re.compile(r"^```console cluster\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PARTS = {"<age>": r"\d+m?\d*s"}


def steps() -> list[tuple[str, str]]:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    parts = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.M)[1:]]
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


def pattern(shown: str) -> str:
    made = re.escape(shown.strip())
    for name, stands_for in PARTS.items():
        made = made.replace(re.escape(name), stands_for)
    return made


async def test_the_page_shows_what_kubectl_says(tmp_path: Path) -> None:
    assert len(steps()) > 3
    async with scenario("dra-fleet", tmp_path) as api:
        await until_pods(api, all_running(13))
        kubeconfig = ClusterDirectory(tmp_path, "test").kubeconfig
        for command, shown in steps():
            said = await run(command, kubeconfig)
            assert re.fullmatch(pattern(shown), said.strip()), f"{command} says:\n{said}"


async def run(command: str, kubeconfig: Path) -> str:
    kubectl, *words = command.split()
    env = {"KUBECONFIG": str(kubeconfig), "HOME": str(kubeconfig.parent), "PATH": os.defpath}
    process = await asyncio.create_subprocess_exec(
        binaries.find().path(kubectl),
        *words,
        env=env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return output.decode()

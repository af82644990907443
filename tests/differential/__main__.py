"""`python -m tests.differential record|gaps|admit|show [FILTER...]`: on ids that hold a FILTER."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.differential import golden
from tests.differential.comparing import differences, listed
from tests.differential.running import run
from tests.differential.script import Script, scripts
from tests.differential.server import RealServer, Server, plane_server
from tests.upstream import binaries
from tests.upstream.cluster import UpstreamCluster


async def record(chosen: list[Script], server: Server) -> None:
    """Each script twice: what differs between two runs of one server cannot be golden."""
    unstable = 0
    recorded: dict[str, dict[str, Any]] = {}
    for script in chosen:
        try:
            first, second = await run(script, server), await run(script, server)
        except AssertionError as error:
            unstable += 1
            print(f"FAILED {script.id}: {error}")
            continue
        recorded.setdefault(script.topic, {})[script.name] = second
        for lines in differences(script, first, second).values():
            unstable += len(lines)
            print(*(f"UNSTABLE {script.id} {line}" for line in lines), sep="\n")
    for topic, answers in recorded.items():
        names = [script.name for script in scripts() if script.topic == topic]
        known = {**golden.read(topic), **answers}
        golden.write(topic, {name: known[name] for name in names if name in known})
    print(f"recorded {len(chosen)} scripts, {unstable} differences between two runs")


async def gaps(chosen: list[Script], *, admit: bool) -> None:
    """Take what passes off the list; put what newly fails on it only if told to."""
    known = golden.gaps()
    steps = [
        golden.gap(script.id, step)
        for script in scripts()
        for step in range(1, len(script.steps) + 1)
    ]
    found = {name: known[name] for name in steps if name in known}
    for script in chosen:
        different = await _compare(script)
        for step in range(1, len(script.steps) + 1):
            name = golden.gap(script.id, step)
            if step not in different:
                found.pop(name, None)
            elif name not in found:
                print(f"{name}: {_summary(different[step][0])}")
                if admit:
                    found[name] = _summary(different[step][0])
    golden.write_gaps(found)
    print(f"{len(found)} of {len(steps)} steps are known gaps")


def _summary(difference: str) -> str:
    return " ".join(difference.partition("\n")[2].split())[:160]


async def show(chosen: list[Script]) -> None:
    """What differs, and the answers of the real server."""
    for script in chosen:
        print(f"== {script.id}")
        for exchange in golden.read(script.topic).get(script.name, []):
            print(json.dumps(exchange, indent=1))
        print(listed(await _compare(script)) or "no difference")


async def _compare(script: Script) -> dict[int, list[str]]:
    async with plane_server() as server:
        ours = await run(script, server)
    return differences(script, golden.read(script.topic)[script.name], ours)


def main(command: str, *filters: str) -> None:
    chosen = [
        script for script in scripts() if not filters or any(each in script.id for each in filters)
    ]
    if command in ("gaps", "admit"):
        asyncio.run(gaps(chosen, admit=command == "admit"))
    elif command == "show":
        asyncio.run(show(chosen))
    else:
        with (
            tempfile.TemporaryDirectory() as directory,
            UpstreamCluster(binaries.find(), Path(directory)) as cluster,
        ):
            context = ssl.create_default_context(cafile=str(cluster.ca_file))
            asyncio.run(record(chosen, RealServer(cluster.port, context)))


if __name__ == "__main__":
    main(*sys.argv[1:])

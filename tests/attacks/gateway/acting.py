"""A gateway in a process of its own whose one operation leaves a trace: `acting.py AUDIT ACTS`.

It prints its port, then serves until it is killed.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from kvestigate.client.access import AccessOptions, resolve
from kvestigate.cybernet.http import listening
from kvestigate.cybernet.loading import Loaded
from kvestigate.cybernet.serving import gateway
from kvestigate.cybernet.spec import HttpListen, read_cyberspace
from kvestigate.cybernet.tokens import digest
from kvestigate.operation import Context, Effect, Operation, touches_nothing

TOKEN = "token-of-ada"


@dataclass(frozen=True, slots=True)
class Act:
    number: str


def act_to(acts: Path) -> Operation[Act, Act]:
    trace = os.open(acts, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def act(_: Context, input: Act) -> Act:
        os.write(trace, f"{input.number}\n".encode())
        await asyncio.sleep(0)
        return input

    return Operation(
        name="act",
        summary="Leave a trace.",
        input=Act,
        output=Act,
        effect=Effect.WRITE,
        touches=touches_nothing,
        handler=act,
        for_agents=True,
    )


async def main(audit: str, acts: Path) -> None:
    space = read_cyberspace(
        {
            "apiVersion": "kvestigate.cybernet/v1",
            "kind": "Cyberspace",
            "metadata": {"name": "pool"},
            "auth": {"tokens": [{"identity": "ada", "sha256": digest(TOKEN)}]},
            "operations": {"allow": ["act"]},
            "audit": {"path": audit},
        }
    )
    config = acts.with_suffix(".kubeconfig")
    config.write_text('{"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}]}')
    access = resolve(AccessOptions(kubeconfig=str(config), cluster="c"), {}, None)
    async with (
        gateway(Loaded(space, {"act": act_to(acts)}), access) as opened,
        await listening(opened, HttpListen("127.0.0.1", 0)) as server,
    ):
        print(server.address[1], flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))

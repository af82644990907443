"""`exec`: run a command in a container, in process over WebSocket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.client.streams import Session
from kvestigate.inspection.targets import pods_of, running_one
from kvestigate.kube.containers import container_of
from kvestigate.operation import Effect, Operation, touches_nothing, with_access


@dataclass(frozen=True, slots=True)
class ExecOptions:
    target: str
    """`web-0`, or `deployment/web` for one of its pods."""
    command: tuple[str, ...]
    container: str = ""
    """The pod's default container when empty."""
    stdin: bool = False
    tty: bool = False


@dataclass(frozen=True, slots=True)
class ExecResult:
    exit_code: int
    stdout: str
    stderr: str


@asynccontextmanager
async def session(access: Access, options: ExecOptions) -> AsyncIterator[Session]:
    """The running command: iterate over its output, write to its input."""
    async with connect(access) as api:
        pod = running_one(await pods_of(api, options.target), options.target)
        running = api.exec(
            pod.metadata.name,
            options.command,
            container=container_of(pod, options.container),
            stdin=options.stdin,
            tty=options.tty,
        )
        async with running as opened:
            yield opened


async def collect(access: Access, options: ExecOptions) -> ExecResult:
    """Run the command without input until it ends."""
    async with session(access, options) as running:
        done = await running.communicate()
    return ExecResult(
        done.exit_code,
        done.stdout.decode("utf-8", "replace"),
        done.stderr.decode("utf-8", "replace"),
    )


EXEC: Operation[ExecOptions, ExecResult] = Operation(
    name="exec",
    summary="Run a command in a container.",
    input=ExecOptions,
    output=ExecResult,
    # The command may change anything.
    effect=Effect.WRITE,
    touches=touches_nothing,
    handler=with_access(collect),
)

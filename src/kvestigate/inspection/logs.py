"""`logs`: the logs of a pod, or of all pods of a workload."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.client.logs import LogOptions
from kvestigate.errors import InputError, KvestigateError, UsageError
from kvestigate.inspection.targets import pods_of
from kvestigate.kube import durations
from kvestigate.kube.containers import container_of
from kvestigate.kube.patterns import TooCostly, check_pattern, compiled
from kvestigate.kube.views.pods import Pod
from kvestigate.operation import Context, Effect, Operation, param, touches_nothing

MOST_FOLLOWED = 64
"""Each followed container holds a connection."""

_WAITING = 1000
"""Lines that are buffered before reading from the servers pauses."""


def _since(text: str) -> int:
    return max(math.ceil(durations.parse(text)), 1)


@dataclass(frozen=True, slots=True)
class LogsOptions:
    target: Annotated[str, param("A pod, or deployment/NAME for all of its pods.", argument=True)]
    container: Annotated[
        str, param("Container whose log to show.", "-c", "--container", metavar="NAME")
    ] = ""
    """The pod's default container when empty."""
    all_containers: Annotated[bool, param("All containers of each pod.")] = False
    follow: Annotated[
        bool, param("Show new lines until Ctrl-C.", "-f", "--follow", operator_only=True)
    ] = False
    tail: (
        Annotated[
            int,
            param(
                "Only the last lines of each container.",
                metavar="LINES",
                lowest=0,
                highest=10**9,
            ),
        ]
        | None
    ) = None
    since_seconds: (
        Annotated[
            int,
            param("Only lines of the last TIME: 10m, 2h.", "--since", metavar="TIME", parse=_since),
        ]
        | None
    ) = None
    previous: Annotated[
        bool, param("Show the log of the run before the last restart.", "-p", "--previous")
    ] = False
    timestamps: Annotated[bool, param("Start each line with its time.")] = False
    grep: Annotated[
        str, param("Only lines that match this regular expression (RE2).", metavar="PATTERN")
    ] = ""

    def __post_init__(self) -> None:
        check_pattern(self.grep, "grep")
        if self.container and self.all_containers:
            raise UsageError("--container and --all-containers cannot be combined")


@dataclass(frozen=True, slots=True)
class LogSource:
    pod: str
    container: str


@dataclass(frozen=True, slots=True)
class Line:
    source: LogSource
    text: str


@dataclass(frozen=True, slots=True)
class Logs:
    lines: tuple[Line, ...]


class Stream:
    """The lines of all sources as they arrive; the lines of one source stay in order."""

    def __init__(
        self,
        api: Api,
        sources: Sequence[LogSource],
        options: LogsOptions,
        unplaced: Sequence[str] = (),
        redact: Callable[[str], str] = str,
    ) -> None:
        self.sources = tuple(sources)
        self.unplaced = tuple(unplaced)
        """Names of pods that are not scheduled and therefore have no logs."""
        self._api = api
        self._options = options
        self._redact = redact

    async def __aiter__(self) -> AsyncGenerator[Line, None]:
        failure: KvestigateError | None = None
        if not self._options.follow:
            for source in self.sources:
                try:
                    async for read in self._lines(source):
                        yield read
                except KvestigateError as error:
                    failure = failure or error  # still read the other sources
            if failure is not None:
                raise failure
            return
        queue: asyncio.Queue[Line | None] = asyncio.Queue(_WAITING)
        following = asyncio.ensure_future(self._follow(queue))
        try:
            while (line := await queue.get()) is not None:
                yield line
        finally:
            following.cancel()
            await asyncio.wait({following})
        if not following.cancelled():
            following.result()

    async def _follow(self, queue: asyncio.Queue[Line | None]) -> None:
        async def feed(source: LogSource) -> None:
            async for line in self._lines(source):
                await queue.put(line)

        failure: KvestigateError | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                for source in self.sources:
                    tasks.create_task(feed(source))
        except* KvestigateError as failures:
            failure = _first(failures)
        await queue.put(None)
        if failure is not None:
            raise failure

    async def _lines(self, source: LogSource) -> AsyncGenerator[Line, None]:
        options = self._options
        wanted = LogOptions(
            container=source.container,
            follow=options.follow,
            reconnect=options.follow,
            previous=options.previous,
            timestamps=options.timestamps,
            tail=options.tail,
            since_seconds=options.since_seconds,
        )
        async with aclosing(self._api.logs(source.pod, wanted)) as lines:
            async for line in lines:
                text = self._redact(line.decode("utf-8", "replace"))
                if not options.grep or _matches(options.grep, text):
                    yield Line(source, text)


def _matches(pattern: str, text: str) -> bool:
    try:
        return compiled(pattern).matches(text)
    except TooCostly as error:
        raise InputError(
            str(error), where="grep", hint="write a simpler one, or give tail alone"
        ) from None


@asynccontextmanager
async def streaming(
    access: Access, options: LogsOptions, redact: Callable[[str], str] = str
) -> AsyncIterator[Stream]:
    """The log stream of the containers that `options` select; lines are chosen once redacted."""
    async with connect(access) as api:
        pods = await pods_of(api, options.target)
        sources = [source for pod in pods for source in _sources(pod, options)]
        if options.follow and len(sources) > MOST_FOLLOWED:
            raise UsageError(
                f"--follow: {options.target} has {len(sources)} containers, "
                f"more than {MOST_FOLLOWED}",
                hint="follow one pod, or omit --follow",
            )
        unplaced = [pod.metadata.name for pod in pods if not pod.spec.node_name]
        yield Stream(api, sources, options, unplaced, redact)


async def collect(context: Context, options: LogsOptions) -> Logs:
    """All lines at once; use `streaming` to follow."""
    if options.follow:
        raise UsageError("follow: a followed log has no end and cannot be returned as a whole")
    async with streaming(context.access, options, context.redact) as stream:
        return Logs(tuple([line async for line in stream]))


def _first(failures: BaseExceptionGroup[KvestigateError]) -> KvestigateError:
    inner = failures.exceptions[0]
    return inner if isinstance(inner, KvestigateError) else _first(inner)


def _sources(pod: Pod, options: LogsOptions) -> list[LogSource]:
    name = pod.metadata.name
    if not options.all_containers:
        return [LogSource(name, container_of(pod, options.container))]
    return [
        LogSource(name, container.name)
        for container in (*pod.spec.init_containers, *pod.spec.containers)
    ]


LOGS: Operation[LogsOptions, Logs] = Operation(
    name="logs",
    summary="Show the log of a pod, or of all pods of a workload.",
    input=LogsOptions,
    output=Logs,
    effect=Effect.READ,
    touches=touches_nothing,
    for_agents=True,
    handler=collect,
)

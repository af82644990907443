"""`deploy`: server-side apply of manifests, stage by stage, after the server checked them all.

The server is asked first, without effect, what each manifest would do. If it refuses one,
nothing is applied. What it cannot know yet, objects of types and namespaces that the same
deployment brings, is counted as created and found out when its stage has come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kvestigate.aio.backoff import Backoff
from kvestigate.client.api import Api
from kvestigate.client.call import unserved
from kvestigate.client.connect import connect
from kvestigate.errors import (
    Conflict,
    InputError,
    KvestigateError,
    NoCluster,
    NotFound,
    Unauthorized,
)
from kvestigate.kube.resources import Resource
from kvestigate.manifests.difference import differences
from kvestigate.manifests.model import (
    Deployment,
    FieldConflict,
    Manifest,
    Outcome,
    Result,
    Source,
)
from kvestigate.manifests.order import stages
from kvestigate.manifests.parse import parse
from kvestigate.manifests.types import DEFINITIONS, Types
from kvestigate.manifests.waiting import Body, is_established, until
from kvestigate.operation import Context

_TOGETHER = 8
"""Objects under way at a time."""

_LOOKS = 3
"""How often an object is looked at that changes meanwhile."""

Progress = Callable[[str, int], None]
"""Called with `objects` and how many have yet to be done."""


@dataclass(frozen=True, slots=True)
class DeployOptions:
    sources: tuple[Source, ...]
    namespace: str = ""
    """The one that all manifests must be for; empty: those they name, else the context's."""
    force_conflicts: bool = False
    """Take over fields that other managers own."""
    timeout: float = 60.0
    """Seconds until a new type must be served."""


async def deploy(context: Context, options: DeployOptions) -> Deployment:
    """What was done to each object; or, if it is not to be or cannot be done, what would be."""
    manifests = parse(options.sources)
    _check_namespaces(manifests, options.namespace)
    async with connect(context.access) as api:
        run = _Run(api, options, manifests, context.progress)
        ordered = stages(manifests)
        plan = Deployment(False, await run.each(_joined(ordered), run.preview))
        if not context.apply or plan.failed:
            return plan
        done: tuple[Result, ...] = ()
        for stage in ordered:
            done += await run.each(stage, run.write)
    return Deployment(True, done)


def _joined(ordered: Iterable[Sequence[Manifest]]) -> list[Manifest]:
    return [manifest for stage in ordered for manifest in stage]


def _check_namespaces(manifests: Iterable[Manifest], wanted: str) -> None:
    for manifest in manifests:
        if wanted and manifest.namespace and manifest.namespace != wanted:
            raise InputError(
                f"{manifest.kind} {manifest.name!r} has namespace {manifest.namespace!r}, "
                f"but --namespace is {wanted!r}",
                where=manifest.where,
                hint="omit --namespace, or metadata.namespace in the manifest",
            )


class _Run:
    """One deployment on its way."""

    def __init__(
        self,
        api: Api,
        options: DeployOptions,
        manifests: Sequence[Manifest],
        progress: Progress | None,
    ) -> None:
        self._api = api
        self._options = options
        self._types = Types(api, manifests)
        self._new_namespaces = {
            manifest.name for manifest in manifests if _is(manifest, "", "Namespace")
        }
        self._progress = progress
        self._lost = ""
        """Why it makes no sense to ask the server for more."""

    async def each(
        self, manifests: Sequence[Manifest], act: Callable[[Manifest, Resource], Awaitable[Result]]
    ) -> tuple[Result, ...]:
        room = asyncio.Semaphore(_TOGETHER)
        left = len(manifests)

        async def apply_one(manifest: Manifest) -> Result:
            nonlocal left
            async with room:
                result = await self._guarded(manifest, act)
            left -= 1
            if self._progress is not None:
                self._progress("objects", left)
            return result

        return tuple(await asyncio.gather(*(apply_one(manifest) for manifest in manifests)))

    async def _guarded(
        self, manifest: Manifest, act: Callable[[Manifest, Resource], Awaitable[Result]]
    ) -> Result:
        """A failure is the outcome of that one object."""
        resource: Resource | None = None
        if self._lost:
            return self._result(manifest, resource, Outcome.NOT_TRIED, reason=self._lost)
        try:
            resource = await self._types.of(manifest)
            return await act(manifest, resource)
        except Conflict as error:
            conflicts = conflicts_of(error)
            if not conflicts:
                return self._result(manifest, resource, Outcome.FAILED, reason=error.message)
            return self._result(manifest, resource, Outcome.CONFLICT, conflicts=conflicts)
        except KvestigateError as error:
            if isinstance(error, NoCluster | Unauthorized):
                self._lost = error.message
            reason = f"{error.message}; {error.hint}" if error.hint else error.message
            return self._result(
                manifest, resource, Outcome.FAILED, reason=reason, exit_code=error.exit_code
            )

    async def preview(self, manifest: Manifest, resource: Resource) -> Result:
        try:
            return await self._previewed(manifest, resource)
        except NotFound as missing:
            if self._types.is_defined(manifest) and unserved(missing):
                reason = "not checked by the server: the type does not exist yet"
            elif self._namespace(manifest, resource) in self._new_namespaces:
                reason = "not checked by the server: the namespace does not exist yet"
            else:
                raise
            return self._result(manifest, resource, Outcome.CREATED, reason=reason)

    async def write(self, manifest: Manifest, resource: Resource) -> Result:
        if self._types.is_defined(manifest):
            return await self._once_served(manifest, resource)
        result = await self._apply(manifest, resource)
        if _is(manifest, *DEFINITIONS):
            await self._established(manifest, resource)
        return result

    async def _established(self, manifest: Manifest, resource: Resource) -> None:
        try:
            async with asyncio.timeout(self._options.timeout):
                await until(self._api, resource, manifest.name, "", is_established)
        except TimeoutError:
            raise KvestigateError(
                f"applied, but not established within {self._options.timeout:g} s",
                hint=f"kvestigate describe crd {manifest.name} shows the reason",
            ) from None

    async def _once_served(self, manifest: Manifest, resource: Resource) -> Result:
        """A server serves a new type a moment after it says so, and no watch tells when."""
        backoff = Backoff(initial=0.02, cap=1.0)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.timeout
        while True:
            try:
                return await self._apply(manifest, resource)
            except NotFound as missing:
                if not unserved(missing) or loop.time() > deadline:
                    raise
            await asyncio.sleep(backoff.next())

    async def _previewed(self, manifest: Manifest, resource: Resource) -> Result:
        """Compared with what it was tried on: controllers write at any time, mostly at first."""
        for _ in range(_LOOKS):
            live, made = await self._applied(manifest, resource, dry_run=True)
            if live is None or _version(live) == _version(made):
                break
        return self._compared(manifest, resource, live, made)

    async def _apply(self, manifest: Manifest, resource: Resource) -> Result:
        live, made = await self._applied(manifest, resource, dry_run=False)
        return self._compared(manifest, resource, live, made)

    async def _applied(
        self, manifest: Manifest, resource: Resource, *, dry_run: bool
    ) -> tuple[Body | None, Body]:
        """The object before and after."""
        namespace = self._namespace(manifest, resource)
        live = await self._live(manifest, resource, namespace)
        made = await self._api.apply(
            resource,
            manifest.body,
            namespace=namespace or None,
            dry_run=dry_run,
            force=self._options.force_conflicts,
        )
        return live, made

    def _compared(
        self, manifest: Manifest, resource: Resource, live: Body | None, made: Body
    ) -> Result:
        if live is None:
            return self._result(manifest, resource, Outcome.CREATED)
        changes = differences(live, made)
        outcome = Outcome.CHANGED if changes else Outcome.UNCHANGED
        return self._result(manifest, resource, outcome, changes=changes)

    async def _live(self, manifest: Manifest, resource: Resource, namespace: str) -> Body | None:
        try:
            return await self._api.get(resource, manifest.name, namespace=namespace or None)
        except NotFound as missing:
            if unserved(missing):
                raise
            return None

    def _namespace(self, manifest: Manifest, resource: Resource | None) -> str:
        if resource is None or not resource.namespaced:
            return manifest.namespace if resource is None else ""
        return manifest.namespace or self._options.namespace or self._api.namespace

    def _result(
        self, manifest: Manifest, resource: Resource | None, outcome: Outcome, **details: Any
    ) -> Result:
        return Result(
            kind=manifest.kind,
            namespace=self._namespace(manifest, resource),
            name=manifest.name,
            where=manifest.where,
            outcome=outcome,
            **details,
        )


def _version(body: Body) -> Any:
    return body["metadata"].get("resourceVersion")


def _is(manifest: Manifest, group: str, kind: str) -> bool:
    return (manifest.group, manifest.kind) == (group, kind)


def conflicts_of(error: Conflict) -> tuple[FieldConflict, ...]:
    """Whose fields a refused apply would have taken; none if that was not the reason."""
    return tuple(
        FieldConflict(cause.get("field", "").removeprefix("."), _manager(cause.get("message", "")))
        for cause in error.causes
        if cause.get("reason") == "FieldManagerConflict"
    )


def _manager(message: str) -> str:
    """From `conflict with "kubectl" with subresource "scale" using apps/v1`."""
    return message.partition('"')[2].partition('"')[0] or message

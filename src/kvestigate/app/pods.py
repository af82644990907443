"""An App in pods: applied as `deploy` does it, found again by its label, and removed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from kvestigate.app.compile import APP_LABEL, KINDS, MANAGER, MANAGER_LABEL, compile_to_k8s
from kvestigate.app.fence import Fence
from kvestigate.app.model import Action, Prepared, Step
from kvestigate.app.spec import AppSpec
from kvestigate.client.access import Access
from kvestigate.client.api import Api, Propagation
from kvestigate.client.call import Selection
from kvestigate.client.connect import connect
from kvestigate.errors import KvestigateError, NotFound
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from kvestigate.manifests.deploy import DeployOptions, deploy
from kvestigate.manifests.model import Outcome, Result, Source
from kvestigate.manifests.waiting import Body, until
from kvestigate.operation import Context

_ACTIONS = {
    Outcome.CREATED: Action.CREATE,
    Outcome.CHANGED: Action.CHANGE,
    Outcome.UNCHANGED: Action.UNCHANGED,
    Outcome.CONFLICT: Action.CONFLICT,
    Outcome.FAILED: Action.FAIL,
    Outcome.NOT_TRIED: Action.SKIP,
}


@dataclass(frozen=True, slots=True)
class _Found:
    """An object in the cluster that belongs to the App."""

    resource: Resource
    name: str
    uid: str

    @property
    def subject(self) -> str:
        return f"{self.resource.kind} {self.name}"


async def up(
    access: Access, spec: AppSpec, fence: Fence, *, force_conflicts: bool, timeout: float
) -> Prepared:
    """What the App says is made so; then goes what an earlier version of it had and it has not."""
    manifests = compile_to_k8s(spec, fence)
    there = await _objects(access, spec, fence)
    text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": manifests}).decode()
    wanted = DeployOptions(
        sources=(Source(spec.full_name, text),), force_conflicts=force_conflicts, timeout=timeout
    )
    kept = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests}
    plan = await deploy(Context(lambda: access), wanted)
    left = [item for item in there if (item.resource.kind, item.name) not in kept]

    async def carry_out() -> tuple[Step, ...]:
        done = await deploy(Context(lambda: access, apply=True), wanted)
        steps = tuple(map(_step, done.objects))
        if done.failed:
            return steps + tuple(Step(Action.SKIP, item.subject) for item in left)
        return steps + await _removed(access, spec, left, timeout)

    return Prepared(tuple(map(_step, plan.objects)) + _deletions(left), carry_out)


async def down(access: Access, spec: AppSpec, fence: Fence, *, timeout: float) -> Prepared:
    """All that has the App's label goes, and with it what belongs to it."""
    found = await _objects(access, spec, fence)
    return Prepared(_deletions(found), lambda: _removed(access, spec, found, timeout))


def _deletions(found: Sequence[_Found]) -> tuple[Step, ...]:
    return tuple(Step(Action.DELETE, item.subject) for item in found)


def _step(result: Result) -> Step:
    owners = dict.fromkeys(conflict.manager for conflict in result.conflicts)
    reason = result.reason
    if owners:
        fields = ", ".join(conflict.path for conflict in result.conflicts)
        reason = f"{', '.join(owners)} owns {fields}"
    return Step(_ACTIONS[result.outcome], f"{result.kind} {result.name}", reason, result.changes)


async def _objects(access: Access, spec: AppSpec, fence: Fence) -> list[_Found]:
    """What the cluster has of the App, what needs others first; Conflict if it is another's."""
    labels = f"{APP_LABEL}={spec.metadata.name},{MANAGER_LABEL}={MANAGER}"
    selection = Selection(spec.metadata.namespace, labels=labels)
    resources = [builtins.resource(kind) for kind in KINDS]
    async with connect(access) as api:
        pages = await asyncio.gather(*(api.list(resource, selection) for resource in resources))
    for page in pages:
        for item in page.items:
            fence.check(f"App {spec.full_name}", item["metadata"])
    return [
        _Found(resource, item["metadata"]["name"], item["metadata"]["uid"])
        for resource, page in zip(resources, pages, strict=True)
        for item in page.items
    ]


async def _removed(
    access: Access, spec: AppSpec, found: Sequence[_Found], timeout: float
) -> tuple[Step, ...]:
    namespace = spec.metadata.namespace
    async with connect(access) as api:
        return tuple(
            await asyncio.gather(*(_remove(api, namespace, item, timeout) for item in found))
        )


async def _remove(api: Api, namespace: str, item: _Found, timeout: float) -> Step:
    """It is gone when its pods are. A failure is the outcome of that one object."""

    def gone(body: Body | None) -> bool:
        return body is None or body["metadata"]["uid"] != item.uid

    try:
        await api.delete(
            item.resource,
            item.name,
            namespace=namespace,
            propagation=Propagation.FOREGROUND,
            uid=item.uid,
        )
        async with asyncio.timeout(timeout):
            await until(api, item.resource, item.name, namespace, gone)
    except TimeoutError:
        return Step(Action.LEAVE, item.subject, f"not gone within {timeout:g} s")
    except NotFound:
        pass  # somebody was faster
    except KvestigateError as error:
        return Step(Action.FAIL, item.subject, error.message)
    return Step(Action.DELETE, item.subject)

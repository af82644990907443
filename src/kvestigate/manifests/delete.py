"""`delete`: one object of any kind, what goes with it, and whether it is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from kvestigate.client.api import Api, Propagation
from kvestigate.client.connect import connect
from kvestigate.client.discovery import Discovery
from kvestigate.client.named import get_named, kind_and_name
from kvestigate.errors import NotFound
from kvestigate.kube.resources import Resource
from kvestigate.manifests.dependents import Dependents, dependents
from kvestigate.manifests.waiting import Body, until
from kvestigate.operation import Context, duration, param

Progress = Callable[[str, int], None]

GONE, LEAVING, UNTOUCHED = "gone", "leaving", "untouched"


def _propagation(text: str) -> Propagation:
    try:
        return Propagation(text.capitalize())
    except ValueError:
        raise ValueError(f"{text!r} is not one of 'background', 'foreground', 'orphan'") from None


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    kind: Annotated[
        str,
        param("Any name of a type: pod, deploy, widgets.example.org; or KIND/NAME.", argument=True),
    ]
    name: Annotated[str, param("The name of the object.", argument=True)] = ""
    propagation: Annotated[
        Propagation,
        param(
            "Owned objects are deleted after the object, before it, or kept.",
            "--cascade",
            metavar="[background|foreground|orphan]",
            parse=_propagation,
            show=str.lower,
        ),
    ] = Propagation.BACKGROUND
    grace_seconds: (
        Annotated[
            int,
            param(
                "Grace period, instead of the object's own.",
                "--grace-period",
                metavar="SECONDS",
                lowest=0,
                highest=86_400,
            ),
        ]
        | None
    ) = None
    timeout: Annotated[float, duration("How long to wait until the object is deleted.")] = 60.0


@dataclass(frozen=True, slots=True)
class Deletion:
    kind: str
    namespace: str
    """Empty for what is in none."""
    name: str
    propagation: Propagation
    outcome: str
    """`gone`, still `leaving`, or `untouched`, which in a preview it always is."""
    finalizers: tuple[str, ...] = ()
    """Who still has to agree before it is gone."""
    with_it: Dependents = field(default_factory=lambda: Dependents({}))
    """What goes, or with `Orphan` stays without its owner."""


async def delete(context: Context, options: DeleteOptions) -> Deletion:
    """In the namespace of the context."""
    kind, name = kind_and_name(options.kind, options.name)
    options = replace(options, kind=kind, name=name)
    async with connect(context.access) as api:
        discovery = Discovery(api)
        resource = await discovery.resolve(options.kind)
        body = await get_named(api, resource, options.name, dict[str, Any])
        registry = await discovery.registry()
        more = await dependents(api, registry, resource, body, context.progress)
        # Says early that it is forbidden.
        await _ask(api, resource, body, options, dry_run=True)
        outcome, left = UNTOUCHED, body
        if context.apply:
            outcome, left = await _carried_out(api, resource, body, options)
    metadata = body["metadata"]
    return Deletion(
        kind=resource.kind,
        namespace=metadata.get("namespace", ""),
        name=options.name,
        propagation=options.propagation,
        outcome=outcome,
        finalizers=() if outcome == GONE else tuple(left["metadata"].get("finalizers") or ()),
        with_it=more,
    )


async def _ask(
    api: Api, resource: Resource, body: Body, options: DeleteOptions, *, dry_run: bool
) -> None:
    await api.delete(
        resource,
        options.name,
        propagation=options.propagation,
        grace_seconds=options.grace_seconds,
        # Only what was shown, not one that took its name since.
        uid=body["metadata"]["uid"],
        dry_run=dry_run,
    )


async def _carried_out(
    api: Api, resource: Resource, body: Body, options: DeleteOptions
) -> tuple[str, Body]:
    """Whether it is gone, and the last that was seen of it."""
    uid, last = body["metadata"]["uid"], body

    def gone(live: Body | None) -> bool:
        nonlocal last
        if live is None or live["metadata"]["uid"] != uid:
            return True
        last = live
        return False

    try:
        await _ask(api, resource, body, options, dry_run=False)
        async with asyncio.timeout(options.timeout):
            await until(api, resource, options.name, api.namespace, gone)
    except TimeoutError:
        return LEAVING, last
    except NotFound:
        pass  # somebody was faster
    return GONE, last

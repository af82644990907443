"""The object that a user named, or a hint at the one that was meant."""

from __future__ import annotations

from typing import Any

from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.errors import (
    Forbidden,
    KvestigateError,
    NotFound,
    UsageError,
    differs_in_number,
    nearest,
)
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.meta import PartialObject

NAMESPACES = builtins.resource("namespaces")


def kind_and_name(kind: str, name: str) -> tuple[str, str]:
    """Of an object that was named as `pod web-0`, or as `pod/web-0` without a `name`."""
    if not name:
        kind, slash, name = kind.partition("/")
        if not (kind and slash and name):
            raise UsageError(
                "missing argument 'NAME'",
                hint="write KIND NAME or KIND/NAME: `pod web-0` or `pod/web-0`",
            )
    return kind, name


async def get_named(api: Api, resource: Resource, name: str, type: type[Any]) -> Any:
    """The object; if there is none of that name, `NotFound` hints at a similar one."""
    if not name or "/" in name or name in (".", ".."):
        # Such a name would be the path of something else.
        raise UsageError(f"{name!r} is not a valid name of a {resource.singular_name}")
    try:
        return await api.get(resource, name, type=type)
    except NotFound as missing:
        missing.hint = missing.hint or await _near(api, resource, name)
        raise


async def require_namespace(api: Api, name: str) -> None:
    """NotFound with a hint if the namespace does not exist; passes if reading it is forbidden."""
    try:
        await get_named(api, NAMESPACES, name, PartialObject)
    except Forbidden:
        return


async def _near(api: Api, resource: Resource, name: str) -> str | None:
    """The hint with similar names; empty if listing is forbidden."""
    where = api.namespace if resource.namespaced else None
    if where is not None and (elsewhere := await _elsewhere(api, resource, name)):
        return f"the {resource.singular_name} is in {elsewhere}"
    try:
        page = await api.list(resource, Selection(where), type=PartialObject)
    except KvestigateError:
        return None
    names = [other.metadata.name for other in page.items]
    kind = resource.kind.lower() if len(names) == 1 else resource.plural
    # The name of a workload is where those of its pods begin, and not similar to them.
    longer = sorted(
        other for other in names if other.startswith(name) and not differs_in_number(name, other)
    )
    near = longer[:3] or [nearest(name, names)]
    if any(near):
        more = f" {len(longer)} names begin with {name!r}" if len(longer) > len(near) else ""
        return f"did you mean {' or '.join(map(repr, near))}?{more}"
    if where is None:
        return f"the cluster has {len(names)} {kind}, none with a similar name"
    count = f"{len(names)} {kind}, none with a similar name"
    return f"namespace {where!r} has {count if names else f'no {resource.plural}'}; try another -n"


async def _elsewhere(api: Api, resource: Resource, name: str) -> str:
    """`namespace 'shop': add -n shop`; empty if no other namespace has the object."""
    try:
        everywhere = Selection(fields=f"metadata.name={name}")
        page = await api.list(resource, everywhere, type=PartialObject)
    except KvestigateError:
        return ""
    namespaces = sorted(
        item.metadata.namespace for item in page.items if item.metadata.name == name
    )
    if not namespaces:
        return ""
    more = f" and {len(namespaces) - 1} more" if len(namespaces) > 1 else ""
    return f"namespace {namespaces[0]!r}{more}: add -n {namespaces[0]}"

"""Following one object until something is so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.errors import Expired
from kvestigate.kube.resources import Resource

Body = dict[str, Any]


async def until(
    api: Api,
    resource: Resource,
    name: str,
    namespace: str,
    done: Callable[[Body | None], bool],
) -> None:
    """Return once `done` holds of the object, None when there is none. The deadline is yours."""
    where = namespace if resource.namespaced else None
    selection = Selection(where, fields=f"metadata.name={name}")
    while True:
        page = await api.list(resource, selection)
        if done(page.items[0] if page.items else None):
            return
        watch = api.watch(resource, selection, resource_version=page.metadata.resource_version)
        try:
            async with watch as events:
                async for event in events:
                    if done(None if event.type == "DELETED" else event.object):
                        return
        except Expired:
            continue  # the list says what we missed


def is_established(definition: Body | None) -> bool:
    """Whether a CustomResourceDefinition's objects can be written now."""
    conditions = ((definition or {}).get("status") or {}).get("conditions") or ()
    return any(
        condition.get("type") == "Established" and condition.get("status") == "True"
        for condition in conditions
    )

"""Namespaces that are deleted: empty them, then let them go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kvestigate import errors
from kvestigate.client.api import Propagation
from kvestigate.client.cache import Change, Key, key_of
from kvestigate.client.call import Selection
from kvestigate.client.recorder import EVENTS
from kvestigate.cluster.controllers import conditions
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import NAMESPACES, PODS
from kvestigate.cluster.controllers.reconciler import Reconciler
from kvestigate.cluster.controllers.times import stamp
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.core import Namespace, NamespaceStatus
from kvestigate.kube.views.meta import Condition

FINALIZER = "kubernetes"
_AGAIN = 5.0
"""Seconds until the next look at what does not go; its going is noticed at once."""

_FINE = {
    "NamespaceDeletionDiscoveryFailure": (
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": (
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
}
"""The conditions of a namespace on its way out, and what they say when all goes well."""


def decide(
    namespace: Namespace,
    failures: Sequence[str],
    content: Mapping[Resource, Sequence[Any]],
    now: float,
) -> NamespaceStatus:
    """The status of a namespace in which so much is left."""
    troubles = _troubles(failures, content)
    present = namespace.status.conditions
    for kind, fine in _FINE.items():
        status = "True" if kind in troubles else "False"
        reason, message = troubles.get(kind, fine)
        present = conditions.put(present, Condition(kind, status, reason, message, stamp(now)))
    return NamespaceStatus(phase="Terminating", conditions=present)


def _troubles(
    failures: Sequence[str], content: Mapping[Resource, Sequence[Any]]
) -> dict[str, tuple[str, str]]:
    troubles: dict[str, tuple[str, str]] = {}
    if failures:
        reasons = ", ".join(sorted(failures))
        message = f"Failed to delete all resource types, {len(failures)} remaining: {reasons}"
        troubles["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", message)
    counts = sorted(
        f"{resource.plural}.{resource.group} has {len(items)} resource instances"
        for resource, items in content.items()
        if items
    )
    if counts:
        left = ", ".join(counts)
        message = f"Some resources are remaining: {left}"
        troubles["NamespaceContentRemaining"] = ("SomeResourcesRemain", message)
    held = Counter(
        name for items in content.values() for item in items for name in item.metadata.finalizers
    )
    if held:
        left = ", ".join(f"{name} in {held[name]} resource instances" for name in sorted(held))
        message = f"Some content in the namespace has finalizers remaining: {left}"
        troubles["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", message)
    return troubles


def _pods_of(content: Mapping[Resource, Sequence[Any]]) -> dict[Resource, Sequence[Any]]:
    for resource, pods in content.items():
        if (resource.group, resource.plural) == ("", "pods"):
            return {resource: pods}
    return {PODS.resource: ()}  # none that is seen yet


class NamespaceController(Reconciler[Namespace]):
    def __init__(self, context: Context) -> None:
        super().__init__(context, NAMESPACES)
        self._inventory = context.inventory()
        self._inventory.subscribe(self._note)

    def _note(self, resource: Resource, change: Change[Any]) -> None:
        """What goes from a terminating namespace may be the last of it."""
        if not resource.namespaced:
            return
        key = Key("", change.key.namespace)
        namespace = self._objects.get(key)
        if namespace is not None and namespace.metadata.deletion_timestamp is not None:
            self._context.queue.add(key)

    async def _reconcile(self, namespace: Namespace) -> float | None:
        leaving = namespace.metadata.deletion_timestamp is not None
        if not leaving or FINALIZER not in namespace.spec.finalizers:
            return None
        key = key_of(namespace)
        content: Mapping[Resource, Sequence[Any]] = self._inventory.in_namespace(key.name)
        if await self._any(PODS.resource, key):
            # What pods need on their way out (secrets, policies, services) goes after them.
            content = _pods_of(content)
        failures = await self._empty(key, content)
        status = decide(namespace, failures, content, self._context.now())
        await self._put_status(namespace, status)
        if content or failures:
            return _AGAIN
        if left := await self._unseen(key):
            await self._empty(key, dict.fromkeys(left, ()))
            return _AGAIN
        await self._empty(key, [EVENTS])  # the inventory leaves them out
        await self._finalize(key)
        return None

    async def _empty(self, key: Key, content: Iterable[Resource]) -> list[str]:
        failures = []
        for resource in content:
            try:
                await self._context.api.delete_collection(
                    resource, Selection(key.name), propagation=Propagation.BACKGROUND
                )
            except errors.NotFound:
                continue  # no longer served
            except errors.ApiError as error:
                failures.append(f"{resource.qualified}: {error.message}")
        return failures

    async def _unseen(self, key: Key) -> list[Resource]:
        """What a cache may not have heard of yet: asked once, before it is too late."""
        unseen = []
        for resource in self._inventory.resources:
            if resource.namespaced and await self._any(resource, key):
                unseen.append(resource)
        return unseen

    async def _any(self, resource: Resource, key: Key) -> bool:
        return bool((await self._context.api.list(resource, Selection(key.name))).items)

    async def _finalize(self, key: Key) -> None:
        api = self._context.api
        try:
            whole = await api.get(NAMESPACES.resource, key.name)
            finalizers = [
                name for name in whole["spec"].get("finalizers") or [] if name != FINALIZER
            ]
            whole["spec"]["finalizers"] = finalizers
            await api.replace(NAMESPACES.resource, key.name, whole, subresource="finalize")
        except errors.NotFound:
            pass

"""The frame of a controller, and what those that own pods do alike.

The events are kube-controller-manager's, word for word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Generic

import msgspec

from kvestigate import errors
from kvestigate.client.api import PatchType
from kvestigate.client.cache import Key, V
from kvestigate.client.recorder import NORMAL, WARNING
from kvestigate.cluster.controllers import owners
from kvestigate.cluster.controllers.context import Context, Keys
from kvestigate.cluster.controllers.kinds import PODS, Kind
from kvestigate.kube.views.pods import Pod


class Reconciler(Generic[V]):
    """A controller of one kind: one object at a time is brought to its wanted state."""

    def __init__(self, context: Context, kind: Kind[V], keys: Keys[V] = owners.itself) -> None:
        """`keys` are reconciled when an object of the kind has changed."""
        self._context = context
        self._kind = kind
        self._objects = context.watch(kind, keys)

    async def reconcile(self, key: Key) -> float | None:
        view = self._objects.get(key)
        return None if view is None else await self._reconcile(view)

    async def _reconcile(self, view: V) -> float | None:
        """Reconcile an object that exists; seconds until it must be reconciled again."""
        raise NotImplementedError

    async def _put_status(self, view: V, status: msgspec.Struct) -> bool:
        return await self._context.put_status(self._kind, view, status)

    def _tell(self, view: V, reason: str, message: str, type: str = NORMAL) -> None:
        self._context.tell(self._kind, view, reason, message, type)


class PodOwner(Reconciler[V]):
    """A controller of objects that own pods."""

    def __init__(self, context: Context, kind: Kind[V]) -> None:
        super().__init__(context, kind)
        self._pods = context.watch(PODS, owners.owner_keys(kind, self._objects))

    async def _claim(
        self, owner: V, candidates: Iterable[Pod] | None = None, *, finalizers: Sequence[str] = ()
    ) -> tuple[Pod, ...]:
        """The owner's pods: orphans are adopted, those that no longer match are released."""
        if candidates is None:
            candidates = owners.candidates(self._pods, owner)
        return await claimed(
            self._context, self._kind, owner, PODS, candidates, finalizers=finalizers
        )

    async def _create_pod(self, owner: V, body: dict[str, Any]) -> None:
        """Create a pod of the owner, with an event about the outcome."""
        try:
            pod = await self._context.create(PODS, body)
        except errors.KvestigateError as error:
            self._tell(owner, "FailedCreate", f"Error creating: {error.message}", WARNING)
            raise
        self._tell(owner, "SuccessfulCreate", f"Created pod: {pod.metadata.name}")

    async def _delete_pod(self, owner: V, pod: Pod) -> None:
        """Delete a pod of the owner, with an event unless it was gone already."""
        if await self._context.delete(PODS, pod):
            self._tell(owner, "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")


async def claimed(
    context: Context,
    kind: Kind[Any],
    owner: Any,
    dependents: Kind[V],
    candidates: Iterable[V],
    *,
    finalizers: Sequence[str] = (),
) -> tuple[V, ...]:
    """The candidates that belong to the owner; orphans are adopted, mismatches released.

    Adopted objects get the `finalizers`.
    """
    claim = owners.claim(owner, owners.selector_of(owner.spec.selector), candidates)
    for view in claim.adopt:
        patch = owners.adoption(kind, owner, view)
        if finalizers:
            patch["metadata"]["finalizers"] = list(finalizers)
        await context.patch(dependents, view, patch, type=PatchType.STRATEGIC)
    for view in claim.release:
        patch = owners.release(owner, view)
        await context.patch(dependents, view, patch, type=PatchType.STRATEGIC)
    return claim.owned

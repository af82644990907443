"""What controllers do alike with the objects they own: claim them, create and delete pods.

The events are kube-controller-manager's, word for word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kvestigate import errors
from kvestigate.client.api import PatchType
from kvestigate.client.cache import V
from kvestigate.client.recorder import WARNING
from kvestigate.cluster.controllers import owners
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import PODS, Kind
from kvestigate.kube.views.pods import Pod


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


async def create_pod(context: Context, kind: Kind[V], owner: V, body: dict[str, Any]) -> None:
    """Create a pod of the owner, with an event about the outcome."""
    try:
        pod = await context.create(PODS, body)
    except errors.KvestigateError as error:
        message = f"Error creating: {error.message}"
        context.tell(kind, owner, "FailedCreate", message, WARNING)
        raise
    context.tell(kind, owner, "SuccessfulCreate", f"Created pod: {pod.metadata.name}")


async def delete_pod(context: Context, kind: Kind[V], owner: V, pod: Pod) -> None:
    """Delete a pod of the owner, with an event unless it was gone already."""
    if await context.delete(PODS, pod):
        context.tell(kind, owner, "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")

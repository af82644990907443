"""ControllerRevisions: the history of a StatefulSet's or DaemonSet's template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvestigate import errors
from kvestigate.client.cache import Named
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import REVISIONS, Kind
from kvestigate.cluster.controllers.objects import ControllerRevision, Template
from kvestigate.cluster.controllers.owners import controller_reference
from kvestigate.cluster.controllers.templates import template_hash

HASH = "controller-revision-hash"
"""The label that says which revision a pod was made from."""
_NAME_MAX = 223


@dataclass(frozen=True, slots=True)
class History:
    """The revisions of one owner, and the one that its present template is."""

    update: ControllerRevision | None
    """None until it is created."""
    body: dict[str, Any]
    """What to create, where it does not exist."""
    number: int
    """The revision number that the update has to have."""
    others: tuple[ControllerRevision, ...]

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])


def history_of(
    kind: Kind[Any],
    owner: Named,
    template: Template,
    labels: Mapping[str, str],
    revisions: Sequence[ControllerRevision],
    collisions: int | None,
) -> History:
    """Find the present template among the revisions, or say how its revision would look."""
    data = data_of(template)
    ordered = sorted(revisions, key=lambda revision: (revision.revision, revision.metadata.name))
    update = next((revision for revision in reversed(ordered) if revision.data == data), None)
    others = tuple(revision for revision in ordered if revision is not update)
    highest = max((revision.revision for revision in others), default=0)
    number = highest + 1
    if update is not None and update.revision > highest:
        number = update.revision
    suffix = template_hash(data, collisions)
    name = f"{owner.metadata.name[:_NAME_MAX]}-{suffix}"
    body = {
        "apiVersion": REVISIONS.resource.api_version,
        "kind": REVISIONS.resource.kind,
        "metadata": {
            "name": update.metadata.name if update else name,
            "namespace": owner.metadata.namespace,
            "labels": {**labels, HASH: suffix},
            "ownerReferences": [controller_reference(kind, owner)],
        },
        "data": data,
        "revision": number,
    }
    return History(update, body, number, others)


def data_of(template: Template) -> dict[str, Any]:
    """What a revision holds: a strategic patch that puts the template back."""
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def template_in(revision: ControllerRevision) -> Template:
    template = dict((revision.data.get("spec") or {}).get("template") or {})
    template.pop("$patch", None)
    return template


def to_forget(
    others: Sequence[ControllerRevision], live: set[str], limit: int
) -> list[ControllerRevision]:
    """Revisions beyond the limit, the oldest first; none that a pod was made from."""
    idle = [revision for revision in others if revision.metadata.name not in live]
    return idle[: max(0, len(idle) - limit)]


async def record(context: Context, history: History) -> None:
    """Write the present template into the history, as its newest entry."""
    if history.update is None:
        try:
            await context.create(REVISIONS, history.body)
        except errors.AlreadyExists:
            pass  # our own, which the cache has not seen yet
    elif history.update.revision != history.number:
        patch = {"revision": history.number}
        await context.patch(REVISIONS, history.update, patch)

"""`describe`: one object, the objects it depends on, and its events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any

from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.client.connect import connect
from kvestigate.client.discovery import Discovery
from kvestigate.client.named import get_named, kind_and_name
from kvestigate.errors import KvestigateError
from kvestigate.inspection.description import Description, blocks, describe, events_section
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.core import Event
from kvestigate.operation import Effect, Operation, param, touches_nothing, with_progress
from kvestigate.snapshot import listings
from kvestigate.snapshot.collect import take
from kvestigate.snapshot.model import Snapshot
from kvestigate.snapshot.source import Listing, Progress, Source

_EVENTS = builtins.resource("events")

# The other objects that the description of a kind needs.
_RELATED: dict[tuple[str, str], tuple[Listing[Any], ...]] = {
    ("", "nodes"): (listings.PODS_IN_FULL,),
    ("", "services"): (listings.ENDPOINT_SLICES,),
    ("apps", "deployments"): (listings.PODS_IN_FULL,),
    ("apps", "statefulsets"): (listings.PODS_IN_FULL,),
    ("apps", "daemonsets"): (listings.PODS_IN_FULL,),
    ("apps", "replicasets"): (listings.PODS_IN_FULL,),
    ("batch", "jobs"): (listings.PODS_IN_FULL,),
}


@dataclass(frozen=True, slots=True)
class DescribeOptions:
    kind: Annotated[
        str,
        param("Any name of a type: pod, deploy, widgets.example.org; or KIND/NAME.", argument=True),
    ]
    name: Annotated[str, param("The name of the object.", argument=True)] = ""


async def collect(
    access: Access, options: DescribeOptions, progress: Progress | None = None
) -> Description:
    kind, name = kind_and_name(options.kind, options.name)
    async with connect(access) as api:
        resource = await Discovery(api).resolve(kind)
        body = await get_named(api, resource, name, dict[str, Any])
        related = await _related(api, resource, body["metadata"], progress)
        described = describe(resource, body, related)
        section = events_section(await _events(api, resource, body), datetime.now(UTC))
    return described if section is None else described.with_section(section)


async def _related(
    api: Api, resource: Resource, metadata: dict[str, Any], progress: Progress | None
) -> Snapshot:
    """Only of the object's namespace, or only the pods of a node."""
    wanted = _RELATED.get((resource.group, resource.plural), ())
    fields = f"spec.nodeName={metadata['name']}" if resource.plural == "nodes" else ""
    sources: dict[Source[Any], Source[Any]] = {
        replace(listing, fields=fields): listing for listing in wanted
    }
    snapshot = await take(api, sources, progress, namespace=metadata.get("namespace", ""))
    return replace(
        snapshot,
        listed={sources[narrowed]: items for narrowed, items in snapshot.listed.items()},
        gaps={sources[narrowed]: gap for narrowed, gap in snapshot.gaps.items()},
        parts={sources[narrowed]: gaps for narrowed, gaps in snapshot.parts.items()},
    )


async def _events(api: Api, resource: Resource, body: dict[str, Any]) -> tuple[Event, ...]:
    """The events of this object; empty if events cannot be listed."""
    metadata = body["metadata"]
    fields = f"involvedObject.kind={resource.kind},involvedObject.name={metadata['name']}"
    try:
        page = await api.list(
            _EVENTS, Selection(metadata.get("namespace") or None, fields=fields), type=Event
        )
    except KvestigateError:
        return ()
    # The kubelet puts the node's name where others put the uid.
    uids = {metadata["uid"], metadata["name"], ""}
    return tuple(item for item in page.items if item.involved_object.uid in uids)


DESCRIBE: Operation[DescribeOptions, Description] = Operation(
    name="describe",
    summary="Show one object in detail, with its events.",
    description=(
        "KIND is any type of the cluster: pod, svc, deploy, node, widgets.example.org. KIND/NAME "
        "works, too. The values of Secrets are not shown."
    ),
    examples=(
        "kvestigate describe pod web-0 -n shop",
        "kvestigate describe node node-04",
        "kvestigate describe ingress front -n shop -o yaml",
    ),
    input=DescribeOptions,
    output=Description,
    effect=Effect.READ,
    touches=touches_nothing,
    for_agents=True,
    handler=with_progress(collect),
    counts=True,
    render=blocks,
)

"""`describe`: all that is worth knowing about one object, and what happened to it lately."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.client.connect import connect
from kvestigate.client.discovery import Discovery
from kvestigate.client.named import get_named
from kvestigate.errors import KvestigateError
from kvestigate.inspection.describing import Description, describe, events_section
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.core import Event
from kvestigate.operation import Effect, Operation
from kvestigate.snapshot import listings
from kvestigate.snapshot.snapshot import Snapshot, take
from kvestigate.snapshot.source import Listing, Progress, Source

_EVENTS = builtins.resource("events")

# What else has to be seen to describe an object of a kind.
_BESIDES: dict[tuple[str, str], tuple[Listing[Any], ...]] = {
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
    kind: str
    """`pod`, `deploy`, `widgets.example.org`: any word that means a type."""
    name: str


async def collect(
    access: Access, options: DescribeOptions, progress: Progress | None = None
) -> Description:
    async with connect(access) as api:
        resource = await Discovery(api).resolve(options.kind)
        body = await get_named(api, resource, options.name, dict[str, Any])
        besides = await _besides(api, resource, body["metadata"], progress)
        described = describe(resource, body, besides)
        section = events_section(await _events(api, resource, body), datetime.now(UTC))
    return described if section is None else described.with_section(section)


async def _besides(
    api: Api, resource: Resource, metadata: dict[str, Any], progress: Progress | None
) -> Snapshot:
    """What is in the object's namespace, or on it if it is a node: not all that a cluster has."""
    wanted = _BESIDES.get((resource.group, resource.plural), ())
    fields = f"spec.nodeName={metadata['name']}" if resource.plural == "nodes" else ""
    asked: dict[Source[Any], Source[Any]] = {replace(it, fields=fields): it for it in wanted}
    found = await take(api, asked, progress, namespace=metadata.get("namespace", ""))
    return replace(
        found,
        listed={asked[each]: items for each, items in found.listed.items()},
        gaps={asked[each]: gap for each, gap in found.gaps.items()},
    )


async def _events(api: Api, resource: Resource, body: dict[str, Any]) -> tuple[Event, ...]:
    """Those about this very object; none if we may not see events."""
    metadata = body["metadata"]
    fields = f"involvedObject.kind={resource.kind},involvedObject.name={metadata['name']}"
    try:
        page = await api.list(
            _EVENTS, Selection(metadata.get("namespace") or None, fields=fields), type=Event
        )
    except KvestigateError:
        return ()
    # The kubelet names its node by name where others name the uid.
    uids = {metadata["uid"], metadata["name"], ""}
    return tuple(it for it in page.items if it.involved_object.uid in uids)


OPERATION = Operation(
    name="describe",
    summary="Show one object in full, and what happened to it.",
    input=DescribeOptions,
    output=Description,
    effect=Effect.READ,
    handler=collect,
)

"""From kinds and namespaces to what is to be followed."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.client.api import Api
from kvestigate.client.discovery import Discovery
from kvestigate.collect.kinds import WorkloadKind
from kvestigate.collect.watching import Source
from kvestigate.errors import UsageError
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource


async def sources_of(
    api: Api, kinds: Sequence[WorkloadKind], namespaces: Sequence[str]
) -> tuple[Source, ...]:
    """One source a kind and namespace. The server is asked only about kinds of its own."""
    discovery = Discovery(api)
    found: list[Source] = []
    for kind in kinds:
        resource = await _resource(discovery, kind)
        for namespace in dict.fromkeys(namespaces) or ("",):
            found.append(Source(kind, resource, namespace))
    return tuple(found)


async def _resource(discovery: Discovery, kind: WorkloadKind) -> Resource:
    known = builtins.registry().for_kind(kind.api_version, kind.name)
    if known is not None:
        return known
    resource = (await discovery.registry()).for_kind(kind.api_version, kind.name)
    if resource is None:
        raise UsageError(
            f"the cluster has no kind {kind.name} in {kind.api_version}",
            hint="`kubectl api-resources` lists the kinds and their versions",
        )
    return resource

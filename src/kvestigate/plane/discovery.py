"""Discovery: which groups, versions and resources a plane serves. Pure."""

from __future__ import annotations

from typing import Any

from kvestigate.kube.resources import Resource
from kvestigate.plane import answer
from kvestigate.plane.types import Types
from kvestigate.wire.message import Response

AGGREGATED = "as=APIGroupDiscoveryList"


def document(path: str, types: Types, accept: str) -> Response | None:
    """The document at a path, or None if there is none."""
    resources = [kind.resource for kind in types]
    if path == "/api":
        return _root({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
    if path == "/apis":
        groups = _groups(resources)
        return _root({"kind": "APIGroupList", "apiVersion": "v1", "groups": list(groups.values())})
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) == 2:
        return _resource_list(resources, "", parts[1])
    if parts[0] == "apis" and len(parts) == 2:
        group = _groups(resources).get(parts[1])
        if group is None:
            return None
        return answer.json_value({"kind": "APIGroup", "apiVersion": "v1", **group})
    if parts[0] == "apis" and len(parts) == 3:
        return _resource_list(resources, parts[1], parts[2])
    return None


def _root(value: dict[str, Any]) -> Response:
    return answer.json_value(value)


def _groups(resources: list[Resource]) -> dict[str, dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = {}
    for resource in resources:
        if not resource.group:
            continue
        group = groups.setdefault(resource.group, {"name": resource.group, "versions": []})
        version = {"groupVersion": resource.api_version, "version": resource.version}
        if version not in group["versions"]:
            group["versions"].append(version)
    for group in groups.values():
        group["preferredVersion"] = group["versions"][0]
    return groups


def _resource_list(resources: list[Resource], group: str, version: str) -> Response | None:
    found = [each for each in resources if (each.group, each.version) == (group, version)]
    if not found:
        return None
    listed: list[dict[str, Any]] = []
    for resource in found:
        listed.append(_entry(resource))
        listed += [
            {
                "name": f"{resource.plural}/{name}",
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": ["get", "patch", "update"],
            }
            for name in resource.subresources
        ]
    return answer.json_value(
        {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": found[0].api_version,
            "resources": listed,
        }
    )


def _entry(resource: Resource) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular_name,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": sorted(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    return entry

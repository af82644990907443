"""What we say about built-in resources, beside what the API server says about itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from tests.upstream.cluster import UpstreamCluster
from tests.upstream.judge import Json

BUILTINS = list(builtins.registry())


@dataclass(frozen=True, slots=True)
class Served:
    """One resource of a discovery document, with its subresources beside it."""

    document: Json
    subresources: frozenset[str]


Discovered = Mapping[tuple[str, str], Served]
"""By `(apiVersion, plural)`."""


@pytest.fixture(scope="module")
def discovered(kubernetes: UpstreamCluster) -> Discovered:
    with kubernetes.judge() as judge:
        versions = ["api/v1"]
        for group in judge.get("/apis")["groups"]:
            versions += [f"apis/{version['groupVersion']}" for version in group["versions"]]
        documents = [judge.get(f"/{version}") for version in versions]
    return {
        (document["groupVersion"], plural): served
        for document in documents
        for plural, served in _served(document).items()
    }


def _served(document: Json) -> dict[str, Served]:
    own: dict[str, Json] = {}
    below: dict[str, set[str]] = defaultdict(set)
    for entry in document["resources"]:
        plural, slash, subresource = entry["name"].partition("/")
        if slash:
            below[plural].add(subresource)
        else:
            own[plural] = entry
    return {plural: Served(entry, frozenset(below[plural])) for plural, entry in own.items()}


def _key(resource: Resource) -> str:
    return f"{resource.qualified}.{resource.version}"


def test_we_know_every_resource_that_is_served(discovered: Discovered) -> None:
    known = {(resource.api_version, resource.plural) for resource in BUILTINS}
    assert known == set(discovered)


@pytest.mark.parametrize("resource", BUILTINS, ids=_key)
def test_our_facts_are_the_servers(resource: Resource, discovered: Discovered) -> None:
    served = discovered[resource.api_version, resource.plural]
    ours = {
        "kind": resource.kind,
        "singularName": resource.singular_name,
        "namespaced": resource.namespaced,
        "shortNames": sorted(resource.short_names),
        "categories": sorted(resource.categories),
        "verbs": sorted(resource.verbs),
    }
    theirs = {
        "kind": served.document["kind"],
        "singularName": served.document["singularName"],
        "namespaced": served.document["namespaced"],
        "shortNames": sorted(served.document.get("shortNames", ())),
        "categories": sorted(served.document.get("categories", ())),
        "verbs": sorted(served.document["verbs"]),
    }
    assert ours == theirs
    assert frozenset(resource.subresources) == served.subresources


def test_our_preference_of_groups_is_the_servers(kubernetes: UpstreamCluster) -> None:
    with kubernetes.judge() as judge:
        served = [group["name"] for group in judge.get("/apis")["groups"]]
    assert [group for group in builtins.GROUPS if group] == served

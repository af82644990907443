"""Naming resources the way kubectl lets people name them."""

from __future__ import annotations

import pytest

from kvestigate.errors import UsageError
from kvestigate.kube import builtins
from kvestigate.kube.resources import Registry, Resource


def named(name: str) -> list[str]:
    return [f"{it.api_version} {it.plural}" for it in builtins.find(name)]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("po", ["v1 pods"]),
        ("pod", ["v1 pods"]),
        ("pods", ["v1 pods"]),
        ("Pod", ["v1 pods"]),
        ("PODS", ["v1 pods"]),
        ("endpoints", ["v1 endpoints"]),
        ("crds", ["apiextensions.k8s.io/v1 customresourcedefinitions"]),
        ("deploy.apps", ["apps/v1 deployments"]),
        ("Deployment.apps", ["apps/v1 deployments"]),
        ("deployments.v1.apps", ["apps/v1 deployments"]),
        ("pods.v1.", ["v1 pods"]),
        ("roles.rbac", ["rbac.authorization.k8s.io/v1 roles"]),
        ("roles.rbac.authorization.k8s.io", ["rbac.authorization.k8s.io/v1 roles"]),
        ("roles.v1.rbac.authorization.k8s.io", ["rbac.authorization.k8s.io/v1 roles"]),
        ("ev", ["v1 events", "events.k8s.io/v1 events"]),
        ("events.events.k8s.io", ["events.k8s.io/v1 events"]),
        (
            "hpa",
            ["autoscaling/v2 horizontalpodautoscalers", "autoscaling/v1 horizontalpodautoscalers"],
        ),
        ("hpa.v1.autoscaling", ["autoscaling/v1 horizontalpodautoscalers"]),
    ],
)
def test_names_people_type(name: str, found: list[str]) -> None:
    assert named(name) == found


ALL = "`kubectl api-resources` lists those that there are"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("depoyment", "did you mean deployments?"),
        ("podz", "did you mean pods?"),
        ("secret-s", "did you mean secrets or services?"),
        ("pods.apps", "did you mean pods?"),
        ("deployments.v2.apps", "did you mean deployments.apps?"),
        ("pods.v1", "did you mean pods?"),
        ("qqqqq", ALL),
        ("", ALL),
        (".", ALL),
    ],
)
def test_names_that_mean_nothing(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match="there is no resource type") as caught:
        builtins.find(name)
    assert caught.value.hint == hint


def test_a_category_is_what_get_all_shows() -> None:
    shown = [it.qualified for it in builtins.registry() if "all" in it.categories]
    assert list(dict.fromkeys(shown)) == [
        "pods",
        "replicationcontrollers",
        "services",
        "daemonsets.apps",
        "deployments.apps",
        "replicasets.apps",
        "statefulsets.apps",
        "horizontalpodautoscalers.autoscaling",
        "cronjobs.batch",
        "jobs.batch",
    ]


def test_the_preferred_resource_of_a_name_comes_first() -> None:
    assert builtins.find("hpa")[0].api_version == "autoscaling/v2"


def test_hand_written_names_belong_to_resources_that_exist() -> None:
    plurals = {it.plural for it in builtins.registry()}
    assert builtins.SHORT_NAMES.keys() <= plurals
    for members in builtins.CATEGORIES.values():
        assert set(members) <= plurals


def test_the_registry_finds_by_kind() -> None:
    registry = builtins.registry()
    assert registry.for_kind("apps/v1", "Deployment") == builtins.resource("deploy")
    assert registry.for_kind("v1", "Pod") == builtins.resource("pods")
    assert registry.for_kind("apps/v1", "Pod") is None
    assert len(registry) == len(list(registry)) == 68


def test_what_the_registry_says_of_a_resource() -> None:
    nodes = builtins.resource("no")
    assert (nodes.namespaced, nodes.kind, nodes.singular_name) == (False, "Node", "node")
    assert nodes.subresources == ("proxy", "status")
    assert "watch" in nodes.verbs
    assert builtins.resource("namespaces").verbs == (
        "create",
        "delete",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    )


@pytest.mark.parametrize(
    ("resource", "arguments", "path"),
    [
        ("pods", {}, "/api/v1/pods"),
        ("pods", {"namespace": "a"}, "/api/v1/namespaces/a/pods"),
        (
            "pods",
            {"namespace": "a", "name": "x", "subresource": "log"},
            "/api/v1/namespaces/a/pods/x/log",
        ),
        ("nodes", {"namespace": "a", "name": "n"}, "/api/v1/nodes/n"),
        ("deploy", {"namespace": "a"}, "/apis/apps/v1/namespaces/a/deployments"),
        ("crd", {"name": "a/b"}, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a%2Fb"),
    ],
)
def test_paths(resource: str, arguments: dict[str, str], path: str) -> None:
    assert builtins.resource(resource).path(**arguments) == path


def test_custom_resources_live_in_a_registry_of_their_own() -> None:
    widgets = Resource("example.com", "v1", "widgets", "Widget", short_names=("wd",))
    gadgets = Resource("example.com", "v1", "pods", "Pod")
    registry = Registry([*builtins.registry(), widgets, gadgets])
    assert registry.find("widget") == registry.find("wd.example") == [widgets]
    assert registry.find("pods")[0].group == ""
    assert registry.find("pods.example.com") == [gadgets]

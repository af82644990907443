"""The official Python client works on a plane: typed, dynamic, and watching."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from typing import Any

import pytest

from tests.served_plane import ServedPlane

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    config: Any = import_module("kubernetes.config")
    with (
        ServedPlane(tmp_path_factory.mktemp("plane"), "--memory") as plane,
        config.new_client_from_config(str(plane.admin_kubeconfig())) as api,
    ):
        yield api


def test_typed(client: Any) -> None:
    k8s: Any = import_module("kubernetes.client")
    core, apps = k8s.CoreV1Api(client), k8s.AppsV1Api(client)
    core.create_namespace({"metadata": {"name": "typed"}})
    core.create_namespaced_config_map("typed", {**CONFIG_MAP, "data": {"a": "1"}})
    core.patch_namespaced_config_map("a", "typed", {"data": {"b": "2"}})
    assert core.read_namespaced_config_map("a", "typed").data == {"a": "1", "b": "2"}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "nginx"}]},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    apps.create_namespaced_deployment("typed", {"metadata": {"name": "web"}, "spec": spec})
    apps.patch_namespaced_deployment_scale("web", "typed", {"spec": {"replicas": 5}})
    assert apps.read_namespaced_deployment_scale("web", "typed").spec.replicas == 5
    page = core.list_namespaced_config_map("typed", limit=1)
    assert [each.metadata.name for each in page.items] == ["a"]
    core.delete_namespaced_config_map("a", "typed")
    with pytest.raises(k8s.ApiException, match="404"):
        core.read_namespaced_config_map("a", "typed")


def test_watching(client: Any) -> None:
    k8s: Any = import_module("kubernetes.client")
    watch: Any = import_module("kubernetes.watch")
    core = k8s.CoreV1Api(client)
    core.create_namespace({"metadata": {"name": "watched"}})
    began = core.list_namespaced_config_map("watched").metadata.resource_version
    core.create_namespaced_config_map("watched", CONFIG_MAP)
    core.patch_namespaced_config_map("a", "watched", {"data": {"b": "2"}})
    core.delete_namespaced_config_map("a", "watched")
    stream = watch.Watch().stream(
        core.list_namespaced_config_map, "watched", resource_version=began, timeout_seconds=5
    )
    seen = [event["type"] for event in islice(stream, 3)]
    assert seen == ["ADDED", "MODIFIED", "DELETED"]


def test_dynamic(client: Any) -> None:
    dynamic: Any = import_module("kubernetes.dynamic")
    api = dynamic.DynamicClient(client)
    maps = api.resources.get(api_version="v1", kind="ConfigMap")
    named = {**CONFIG_MAP, "metadata": {"name": "dynamic"}, "data": {"a": "1"}}
    maps.server_side_apply(body=named, namespace="default", field_manager="tests")
    assert maps.get(name="dynamic", namespace="default").data.to_dict() == {"a": "1"}
    maps.delete(name="dynamic", namespace="default")

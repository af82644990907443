"""The texts of `kubectl explain`, from the package that has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvestigate.cluster.plane.front.openapi import descriptions
from kvestigate.kube import facts
from tests.cluster.plane.conftest import Api


async def schemas(api: Api, path: str) -> dict[str, Any]:
    return dict((await api.get(path)).body["components"]["schemas"])


async def test_kinds_and_their_fields_are_described(api: Api) -> None:
    core = await schemas(api, "/openapi/v3/api/v1")
    pod = core["io.k8s.api.core.v1.Pod"]
    assert pod["description"].startswith("Pod is a collection of containers")
    assert pod["properties"]["spec"]["description"].startswith("Specification of the desired")
    meta = core["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"]
    assert meta["creationTimestamp"]["description"].startswith("CreationTimestamp is a timestamp")


async def test_version_2_says_the_same(api: Api) -> None:
    definitions = (await api.get("/openapi/v2")).body["definitions"]
    field = definitions["io.k8s.api.core.v1.PodSpec"]["properties"]["nodeName"]
    assert field["description"].startswith("NodeName indicates")


async def test_custom_resources_bring_their_own(api: Api) -> None:
    names = {"plural": "foos", "kind": "Foo"}
    spec = {"type": "object", "description": "Specification of Foo"}
    schema = {"type": "object", "description": "Foo for testing", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await api.post(path, definition)).status == 201

    foo = (await schemas(api, "/openapi/v3/apis/example.com/v1"))["com.example.v1.Foo"]
    assert foo["description"] == "Foo for testing"
    assert foo["properties"]["spec"]["description"] == "Specification of Foo"
    assert foo["properties"]["apiVersion"]["description"].startswith("APIVersion defines")
    assert foo["properties"]["metadata"]["description"].startswith("Standard object's metadata")


def _package(directory: Path, release: str, text: str) -> Path:
    schemas = directory / "kubernetes-json-schema" / f"v{release}.0-local"
    schemas.mkdir(parents=True)
    (schemas / "_definitions.json").write_text(text)
    return directory


def _release() -> str:
    return ".".join(facts.release().split(".")[:2])


def test_the_release_that_planes_speak_is_read(tmp_path: Path) -> None:
    fields = {"size": {"description": "How large.", "type": ["string", "null"]}, "mute": {}}
    text = json.dumps({"$defs": {"a.B": {"description": "A B.", "properties": fields}}})
    texts = descriptions.read(_package(tmp_path, _release(), text))["a.B"]
    assert texts.description == "A B."
    assert [texts.field(name) for name in ("size", "mute", "none")] == ["How large.", "", ""]


@pytest.mark.parametrize(
    ("release", "text"),
    [("0.9", '{"$defs":{}}'), ("", "no JSON"), ("", "{}"), ("", '{"$defs":{"a":"text"}}')],
)
def test_a_package_without_them_describes_nothing(release: str, text: str, tmp_path: Path) -> None:
    assert descriptions.read(_package(tmp_path, release or _release(), text)) == {}
    assert descriptions.read(tmp_path / "missing") == {}

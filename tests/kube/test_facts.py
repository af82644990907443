"""The facts table: fresh, complete, and read the way patches and apply need it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvestigate.kube import facts, patch_schema
from kvestigate.kube.facts import Ownership, Type
from kvestigate.kube.patches import strategic

ROOT = Path(__file__).parents[2]
CORE = "io.k8s.api.core.v1."


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "tools" / "facts.py"), "--check", *arguments],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_the_committed_table_is_what_the_sources_give() -> None:
    result = check()
    assert result.returncode == 0, result.stderr


def test_a_stale_table_is_told_apart_line_by_line(tmp_path: Path) -> None:
    table = json.loads((ROOT / "src/kvestigate/kube/facts.json").read_bytes())
    table["definitions"][f"{CORE}Pod"]["f"]["extra"] = "s"
    table["definitions"][f"{CORE}Extra"] = {"t": "s"}
    del table["routes"][0]
    stale = tmp_path / "facts.json"
    stale.write_text(json.dumps(table))
    result = check("--table", str(stale))
    assert result.returncode == 1
    assert [line for line in result.stderr.splitlines() if line.startswith("  ")] == [
        f"  - definition {CORE}Extra",
        f"  ~ definition {CORE}Pod",
        "  + route /v1/bindings",
    ]


def test_a_missing_table_is_stale(tmp_path: Path) -> None:
    assert check("--table", str(tmp_path / "none.json")).returncode == 1


def test_every_reference_resolves() -> None:
    for name in facts.definition_names():
        for field in facts.definition(name).fields.values():
            while field.element is not None:
                field = field.element
            assert not field.definition or facts.definition(field.definition)


def test_every_served_kind_is_defined_and_named() -> None:
    for route in facts.routes():
        definition = facts.for_kind(route.group, route.version, route.kind)
        assert definition is not None, route
        assert facts.kinds()[definition.name] == (route.group, route.version, route.kind)


def test_kinds_that_are_not_built_in_have_no_definition() -> None:
    assert facts.for_kind("example.com", "v1", "Widget") is None
    with pytest.raises(KeyError):
        facts.definition("com.example.Widget")


@pytest.mark.parametrize(
    ("code", "field"),
    [
        ("s", facts.Field(Type.STRING)),
        ("[s set", facts.Field(Type.LIST, element=facts.Field(Type.STRING), topology="set")),
        ("{q", facts.Field(Type.MAP, element=facts.Field(Type.QUANTITY))),
        (
            "[s merge",
            facts.Field(Type.LIST, element=facts.Field(Type.STRING), strategies=("merge",)),
        ),
        (
            "[#a.B merge,retainKeys=name map=name,kind",
            facts.Field(
                Type.LIST,
                element=facts.Field(Type.DEFINED, "a.B"),
                strategies=("merge", "retainKeys"),
                merge_key="name",
                topology="map",
                keys=("name", "kind"),
            ),
        ),
    ],
)
def test_the_grammar_of_fields(code: str, field: facts.Field) -> None:
    assert facts.parse_field(code) == field


@pytest.mark.parametrize(
    ("definition", "name", "ownership", "keys"),
    [
        ("PodSpec", "containers", Ownership.KEYED, ("name",)),
        ("Container", "ports", Ownership.KEYED, ("containerPort", "protocol")),
        ("Container", "args", Ownership.WHOLE, ()),
        ("PodSpec", "tolerations", Ownership.WHOLE, ()),
        ("PodSpec", "nodeSelector", Ownership.WHOLE, ()),
        ("PodSpec", "nodeName", Ownership.WHOLE, ()),
        ("PodSpec", "securityContext", Ownership.FIELDS, ()),
        ("ResourceRequirements", "limits", Ownership.FIELDS, ()),
        ("ServiceSpec", "selector", Ownership.WHOLE, ()),
        ("EnvVarSource", "secretKeyRef", Ownership.WHOLE, ()),
        ("PersistentVolumeClaimSpec", "selector", Ownership.WHOLE, ()),
        ("ConfigMap", "data", Ownership.FIELDS, ()),
    ],
)
def test_who_may_own_what(
    definition: str, name: str, ownership: Ownership, keys: tuple[str, ...]
) -> None:
    field = facts.definition(CORE + definition).fields[name]
    assert (field.ownership, field.keys) == (ownership, keys)


def test_finalizers_are_a_set_and_times_are_owned_whole() -> None:
    metadata = facts.definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
    assert metadata.fields["finalizers"].ownership is Ownership.SET
    assert metadata.fields["creationTimestamp"].ownership is Ownership.WHOLE
    assert metadata.ownership is Ownership.FIELDS


def test_subresources_say_which_kind_is_spoken() -> None:
    routes = {(route.group, route.plural): route for route in facts.routes()}
    pods = {it.name: (it.group, it.version, it.kind) for it in routes["", "pods"].subresources}
    assert pods["eviction"] == ("policy", "v1", "Eviction")
    assert pods["status"] == ("", "v1", "Pod")
    assert pods["exec"] == ("", "v1", "PodExecOptions")
    (scale,) = (it for it in routes["apps", "deployments"].subresources if it.name == "scale")
    assert (scale.group, scale.kind, scale.verbs) == (
        "autoscaling",
        "Scale",
        ("get", "patch", "update"),
    )


def test_only_what_the_release_serves_is_there() -> None:
    plurals = {(route.group, route.version, route.plural) for route in facts.routes()}
    assert ("autoscaling", "v2", "horizontalpodautoscalers") in plurals
    assert all("alpha" not in version and "beta" not in version for _, version, _ in plurals)
    # New in 1.37, which the client that lists the routes already knows.
    assert ("certificates.k8s.io", "v1", "podcertificaterequests") not in plurals
    csinodes = next(route for route in facts.routes() if route.plural == "csinodes")
    assert csinodes.subresources == ()


def test_strategic_merge_reads_the_table() -> None:
    original: dict[str, Any] = {
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {"name": "a", "image": "a:1", "args": ["x"]},
                        {"name": "b", "image": "b:1"},
                    ],
                    "tolerations": [{"key": "old"}],
                }
            }
        }
    }
    patch: dict[str, Any] = {
        "spec": {
            "template": {
                "spec": {
                    "containers": [{"name": "a", "image": "a:2"}],
                    "tolerations": [{"key": "new"}],
                }
            }
        }
    }
    schema = patch_schema.for_kind("apps", "v1", "Deployment")
    spec = strategic.apply(original, patch, schema)["spec"]["template"]["spec"]
    assert spec["containers"] == [
        {"name": "a", "image": "a:2", "args": ["x"]},
        {"name": "b", "image": "b:1"},
    ]
    assert spec["tolerations"] == [{"key": "new"}]


@pytest.mark.parametrize(
    ("path", "strategies", "merge_key"),
    [
        (("metadata", "ownerReferences"), ("merge",), "uid"),
        (("metadata", "finalizers"), ("merge",), ""),
        (("spec", "containers"), ("merge",), "name"),
        (("spec", "containers", "ports"), ("merge",), "containerPort"),
        (("spec", "containers", "resources", "limits", "cpu"), (), ""),
        (("spec", "volumes"), ("merge", "retainKeys"), "name"),
        (("spec", "tolerations"), (), ""),
        (("spec", "nope", "deeper"), (), ""),
        (("metadata", "creationTimestamp", "nothing"), (), ""),
    ],
)
def test_patch_fields_of_a_pod(
    path: tuple[str, ...], strategies: tuple[str, ...], merge_key: str
) -> None:
    schema = patch_schema.for_kind("", "v1", "Pod")
    for step in path[:-1]:
        schema = schema.field(step).schema
    field = schema.field(path[-1])
    assert (field.strategies, field.merge_key) == (strategies, merge_key)


def test_entries_of_a_map_are_patched_by_the_type_of_its_values() -> None:
    schema = patch_schema.for_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    for step in ("spec", "versions", "schema", "openAPIV3Schema", "properties", "any", "not"):
        schema = schema.field(step).schema
    assert schema is patch_schema.patch_schema(
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    )


def test_kinds_that_are_not_built_in_are_patched_untyped() -> None:
    assert patch_schema.for_kind("example.com", "v1", "Widget") is strategic.UNTYPED

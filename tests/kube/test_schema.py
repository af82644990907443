"""Structural checks: what kube-apiserver refuses, in its words (each text was seen on 1.36.4)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.kube import facts, schema, strict

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web",
        "creationTimestamp": "2026-01-31T23:59:59Z",
        "labels": {"app": "web"},
        "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}],
    },
    "spec": {
        "hostNetwork": False,
        "containers": [
            {
                "name": "web",
                "image": "web:1",
                "args": ["-v"],
                "ports": [{"containerPort": 80}],
                "livenessProbe": {"httpGet": {"port": "http"}},
                "resources": {"limits": {"cpu": "500m", "memory": "1.5Gi", "gpu": 1}},
            }
        ],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
    },
}


def definition(group: str, version: str, kind: str) -> facts.Definition:
    found = facts.for_kind(group, version, kind)
    assert found is not None
    return found


POD_DEFINITION = definition("", "v1", "Pod")


def pod_with(path: str, value: Any) -> dict[str, Any]:
    """The pod with one value replaced; `0` in the path is an index."""
    pod = copy.deepcopy(POD)
    *parents, last = path.split(".")
    place: Any = pod
    for step in parents:
        place = place[int(step)] if step.isdigit() else place.setdefault(step, {})
    place[int(last) if last.isdigit() else last] = value
    return pod


def test_what_fits_has_no_problems() -> None:
    assert strict.fits(POD, POD_DEFINITION)
    assert not schema.problems(POD, POD_DEFINITION)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.labels", None),
        ("metadata.labels", {"a": None}),
        ("metadata.creationTimestamp", None),
        ("metadata.creationTimestamp", "2028-02-29T00:00:00Z"),
        ("metadata.creationTimestamp", "2026-01-01T00:00:00.123456+01:00"),
        ("spec", None),
        ("spec.containers.0.args", [None]),
        ("spec.tolerations", [None]),
        ("spec.containers.0.livenessProbe", {"httpGet": {"port": 80}}),
        ("metadata.managedFields", [{"fieldsV1": 3}]),
        *(
            ("spec.containers.0.resources", {"limits": {"cpu": text}})
            for text in ("1 ", "1.", ".5", "+1", "-1", "1E", "1Ei", "5n", "1e3", "1E-2", 1.5)
        ),
    ],
)
def test_what_the_server_takes_although_it_looks_odd(path: str, value: Any) -> None:
    assert schema.problems(pod_with(path, value), POD_DEFINITION) == schema.FITS


NOT_QUANTITIES: list[Any] = ["", "abc", "1.2.3", "0x1", True, [], {}]
UNMARSHAL = "json: cannot unmarshal"
QUANTITY = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("spec", [], f"{UNMARSHAL} array into Go struct field Pod.spec of type v1.PodSpec"),
        (
            "metadata",
            3,
            f"{UNMARSHAL} number into Go struct field Pod.metadata of type v1.ObjectMeta",
        ),
        (
            "spec.containers",
            "x",
            f"{UNMARSHAL} string into Go struct field PodSpec.spec.containers"
            " of type []v1.Container",
        ),
        (
            "spec.containers.0",
            "x",
            f"{UNMARSHAL} string into Go struct field PodSpec.spec.containers of type v1.Container",
        ),
        (
            "metadata.labels",
            [],
            f"{UNMARSHAL} array into Go struct field ObjectMeta.metadata.labels"
            " of type map[string]string",
        ),
        (
            "metadata.labels",
            {"a": 1},
            f"{UNMARSHAL} number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            "metadata.name",
            True,
            f"{UNMARSHAL} bool into Go struct field ObjectMeta.metadata.name of type string",
        ),
        *(
            (
                "spec.priority",
                value,
                f"{UNMARSHAL} {shown} into Go struct field PodSpec.spec.priority of type int32",
            )
            for value, shown in [
                ("1", "string"),
                (True, "bool"),
                (1.5, "number 1.5"),
                (1.0, "number 1.0"),
                (3000000000, "number 3000000000"),
            ]
        ),
        (
            "spec.activeDeadlineSeconds",
            2**63,
            f"{UNMARSHAL} number 9223372036854775808 into Go struct field"
            " PodSpec.spec.activeDeadlineSeconds of type int64",
        ),
        (
            "spec.hostNetwork",
            1,
            f"{UNMARSHAL} number into Go struct field PodSpec.spec.hostNetwork of type bool",
        ),
        (
            "spec.containers.0.ports",
            [{"containerPort": "80"}],
            f"{UNMARSHAL} string into Go struct field"
            " ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
        (
            "spec.containers.0.livenessProbe",
            {"httpGet": {"port": []}},
            f"{UNMARSHAL} array into Go struct field"
            " HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
        ),
        (
            "spec.volumes",
            [{"name": "a", "emptyDir": "x"}],
            f"{UNMARSHAL} string into Go struct field Volume.spec.volumes.VolumeSource.emptyDir"
            " of type v1.EmptyDirVolumeSource",
        ),
        (
            "spec.containers.0.resources",
            {"limits": []},
            f"{UNMARSHAL} array into Go struct field"
            " ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
        ),
        *(
            ("spec.containers.0.resources", {"limits": {"cpu": value}}, QUANTITY)
            for value in NOT_QUANTITIES
        ),
        *(
            (
                "spec.containers.0.resources",
                {"limits": {"cpu": value}},
                "unable to parse quantity's suffix",
            )
            for value in ("1ki", "1e", "1K")
        ),
        (
            "metadata.creationTimestamp",
            5,
            f"{UNMARSHAL} number into Go struct field ObjectMeta.metadata.creationTimestamp"
            " of type string",
        ),
        (
            "metadata.creationTimestamp",
            "yesterday",
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00":'
            ' cannot parse "yesterday" as "2006"',
        ),
        (
            "metadata.creationTimestamp",
            "2026-13-01T00:00:00Z",
            'parsing time "2026-13-01T00:00:00Z": month out of range',
        ),
        (
            "metadata.creationTimestamp",
            "2026-02-30T00:00:00Z",
            'parsing time "2026-02-30T00:00:00Z": day out of range',
        ),
    ],
)
def test_mistyped_values(path: str, value: Any, text: str) -> None:
    assert schema.problems(pod_with(path, value), POD_DEFINITION).mistyped == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("YQ==", ""),
        ("YQ==\n", ""),
        ([1, 2], f"{UNMARSHAL} array into Go struct field Secret.data of type []uint8"),
        ("!!", "illegal base64 data at input byte 0"),
        ("YWJj!", "illegal base64 data at input byte 4"),
        ("YQ", "illegal base64 data at input byte 0"),
        (5, f"{UNMARSHAL} number into Go struct field Secret.data of type []uint8"),
    ],
)
def test_bytes_in_a_secret(data: Any, text: str) -> None:
    secret = {"data": {"key": data}}
    assert schema.problems(secret, definition("", "v1", "Secret")).mistyped == text


def test_the_first_mistyped_value_of_the_document_is_told() -> None:
    pod = {"metadata": {"name": 1}, "spec": {"priority": "high"}}
    assert "metadata.name" in schema.problems(pod, POD_DEFINITION).mistyped


def test_unknown_fields_are_all_told_in_document_order() -> None:
    pod = pod_with("spec.containers.0.imagee", "x")
    pod["spec"]["zzz"] = {"name": 1}
    pod["spec"]["volumes"].append({"name": "v", "emptyDir": {"x": {"y": 1}}})
    pod["Spec"] = {}
    found = schema.problems(pod, POD_DEFINITION)
    assert found.unknown == (
        "spec.containers[0].imagee",
        "spec.volumes[1].emptyDir.x",
        "spec.zzz",
        "Spec",
    )
    assert found.warnings[0] == 'unknown field "spec.containers[0].imagee"'


def test_unknown_fields_are_counted_up_to_a_limit() -> None:
    pod = {"spec": {f"f{number}": 1 for number in range(150)}}
    assert len(schema.problems(pod, POD_DEFINITION).unknown) == 100


def test_a_mistyped_value_is_told_beside_unknown_fields() -> None:
    found = schema.problems({"foo": 1, "spec": 3}, POD_DEFINITION)
    assert found.unknown == ("foo",)
    assert "cannot unmarshal" in found.mistyped


def test_a_definition_that_holds_itself() -> None:
    crd = definition("apiextensions.k8s.io", "v1", "CustomResourceDefinition")

    def with_schema(inner: dict[str, Any]) -> dict[str, Any]:
        outer = {"type": "object", "properties": {"a": {"properties": {"b": inner}}}}
        return {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": outer}}]}}

    assert not schema.problems(with_schema({"type": "string", "default": {"any": [1]}}), crd)
    found = schema.problems(with_schema({"typo": 1}), crd)
    assert found.unknown == (
        "spec.versions[0].schema.openAPIV3Schema.properties.a.properties.b.typo",
    )


def test_every_served_kind_can_be_checked() -> None:
    for route in facts.routes():
        of = definition(route.group, route.version, route.kind)
        value = {"apiVersion": "x", "kind": route.kind, "metadata": {"name": "a"}}
        assert not schema.problems(value, of), route
        assert schema.problems({**value, "nope": 1}, of).unknown == ("nope",)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(["1", "1Gi", "2026-01-01T00:00:00Z", "YQ=="]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "spec", "limits", "resources", "ports", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(
    value=JSON,
    path=st.sampled_from(
        [
            "metadata",
            "metadata.labels",
            "metadata.creationTimestamp",
            "spec",
            "spec.priority",
            "spec.containers",
            "spec.containers.0.resources.limits",
            "spec.containers.0.livenessProbe",
            "spec.containers.0.ports",
        ]
    ),
)
def test_the_fast_yes_is_never_contradicted_by_the_walk(value: Any, path: str) -> None:
    pod = pod_with(path, value)
    if strict.fits(pod, POD_DEFINITION):
        assert schema.examine(pod, POD_DEFINITION) == schema.FITS


SCHEMA_DEFINITION = facts.definition(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
)


@pytest.mark.parametrize(
    ("inner", "fits"),
    [
        ({"type": "string", "maxLength": 3}, True),
        ({"items": {"type": "integer"}}, True),
        ({"properties": {"b": {"allOf": [{"minimum": 1}]}}}, True),
        ({"kind": "string"}, False),
        ({"properties": {"b": {"maxLength": "3"}}}, False),
        ({"properties": {"b": 3}}, False),
        (None, True),
    ],
)
def test_a_type_that_holds_itself_is_checked_all_the_way_down(inner: Any, fits: bool) -> None:
    value = {"type": "object", "properties": {"a": inner}}
    assert strict.fits(value, SCHEMA_DEFINITION) is fits
    assert bool(schema.examine(value, SCHEMA_DEFINITION)) is not fits


def test_nor_does_it_take_for_fitting_what_is_too_deep_to_tell() -> None:
    value: dict[str, Any] = {}
    for _ in range(10_000):
        value = {"properties": {"a": value}}
    assert not strict.fits(value, SCHEMA_DEFINITION)

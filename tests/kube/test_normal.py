"""What a server changes by decoding an object and encoding it again (as seen on 1.36.4)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kvestigate.kube import facts, schema
from kvestigate.kube.normal import normalised

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "labels": {"b": "c"}, "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {
        "enableServiceLinks": False,
        "containers": [{"name": "a", "image": "b", "args": ["x"], "resources": {}}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
    "status": {},
}


def of_kind(group: str, version: str, kind: str) -> facts.Definition:
    found = facts.for_kind(group, version, kind)
    assert found is not None
    return found


def test_a_normal_object_is_given_back_itself() -> None:
    assert normalised(POD, of_kind("", "v1", "Pod")) is POD


def test_unknown_fields_and_nulls_go_and_quantities_become_canonical() -> None:
    pod = {
        **POD,
        "zzz": 1,
        "metadata": {"name": "a", "labels": {"a": None, "b": "c"}, "annotations": None, "foo": 1},
        "spec": {
            "nodeSelector": None,
            "tolerations": [None],
            "containers": [
                {
                    "name": "a",
                    "args": ["x", None],
                    "bar": {},
                    "env": [{"name": "Z", "value": None}],
                    "resources": {
                        "requests": {"cpu": "0.5", "memory": "1024Mi", "x.y/z": 1, "disk": "1e3"},
                        "limits": {"memory": 1.5e9, "cpu": " 1000m", "none": None},
                    },
                }
            ],
        },
    }
    before = copy.deepcopy(pod)
    assert normalised(pod, of_kind("", "v1", "Pod")) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"a": "", "b": "c"}},
        "spec": {
            "tolerations": [{}],
            "containers": [
                {
                    "name": "a",
                    "args": ["x", ""],
                    "env": [{"name": "Z"}],
                    "resources": {
                        "requests": {"cpu": "500m", "memory": "1Gi", "x.y/z": "1", "disk": "1e3"},
                        "limits": {"memory": "1500M", "cpu": "1", "none": "0"},
                    },
                }
            ],
        },
        "status": {},
    }
    assert pod == before, "the argument is left alone"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T01:00:00.5+01:00", "2026-01-01T00:00:00Z"),
    ],
)
def test_times_are_in_utc_to_the_second(given: str, kept: str) -> None:
    event = {"firstTimestamp": given}
    assert normalised(event, of_kind("", "v1", "Event"))["firstTimestamp"] == kept


def test_fine_times_keep_six_digits() -> None:
    lease = of_kind("coordination.k8s.io", "v1", "Lease")
    fine = {"metadata": {}, "spec": {"renewTime": "2026-01-01T00:00:00.000001Z"}}
    assert normalised(fine, lease) is fine
    offset = {"spec": {"renewTime": "2026-01-01T01:00:00.500000+01:00"}}
    assert normalised(offset, lease)["spec"] == {"renewTime": "2026-01-01T00:00:00.500000Z"}


@pytest.mark.parametrize(
    ("time", "rest"),
    [("2026-01-01T01:00:00.5+01:00", ".5+01:00"), ("2026-01-01T00:00:00Z", "Z")],
)
def test_fine_times_must_have_six_digits(time: str, rest: str) -> None:
    found = schema.problems(
        {"spec": {"renewTime": time}}, of_kind("coordination.k8s.io", "v1", "Lease")
    )
    assert found.mistyped == (
        f'parsing time "{time}" as "2006-01-02T15:04:05.000000Z07:00": '
        f'cannot parse "{rest}" as ".000000"'
    )


def test_a_type_that_holds_itself() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string", "typo": 1}}}
    crd = {"spec": {"versions": [{"schema": {"openAPIV3Schema": inner}}]}}
    kept = normalised(crd, of_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"))
    (version,) = kept["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"]["properties"] == {"a": {"type": "string"}}


def test_what_has_no_schema_is_kept_whole() -> None:
    revision = {"metadata": {}, "data": {"any": None, "list": [None]}, "revision": 1}
    assert normalised(revision, of_kind("apps", "v1", "ControllerRevision")) is revision


@pytest.mark.parametrize(
    ("kind", "given", "kept"),
    [
        pytest.param(
            "PodSpec",
            {"hostNetwork": False, "nodeName": "", "volumes": [], "nodeSelector": {}},
            {"containers": None},
            id="an optional empty value is left out",
        ),
        pytest.param(
            "PodSpec",
            {"enableServiceLinks": False, "priority": 0, "runtimeClassName": "", "containers": []},
            {
                "enableServiceLinks": False,
                "priority": 0,
                "runtimeClassName": "",
                "containers": None,
            },
            id="what is behind a pointer stays",
        ),
        pytest.param(
            "ServicePort", {}, {"port": 0, "targetPort": 0}, id="what must be there is there"
        ),
        pytest.param(
            "PodCondition",
            {"type": "Ready", "status": "True"},
            {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None},
            id="a time that never was",
        ),
        pytest.param(
            "Service",
            {},
            {"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}},
            id="structs are written even when empty",
        ),
        pytest.param(
            "Volume",
            {"name": "v", "emptyDir": {}},
            {"name": "v", "emptyDir": {}},
            id="a pointer to nothing",
        ),
    ],
)
def test_what_is_empty_follows_its_declaration(
    kind: str, given: dict[str, Any], kept: dict[str, Any]
) -> None:
    assert normalised(given, facts.definition(f"io.k8s.api.core.v1.{kind}")) == kept


def test_every_declaration_is_of_a_known_field() -> None:
    for name in facts.definition_names():
        kept = normalised({}, facts.definition(name))
        assert kept.keys() <= facts.definition(name).fields.keys(), name

"""The words for values of the wrong type that a strategic merge patch leaves behind."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.kube import facts
from kvestigate.kube.patches import restoring

DEPLOYMENT = facts.for_kind("apps", "v1", "Deployment")
CONFIG_MAP = facts.for_kind("", "v1", "ConfigMap")


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"replicas": 3}, ""),
        ({"replicas": "3"}, "unrecognized type: int32"),
        ({"replicas": True}, "unrecognized type: int32"),
        ({"replicas": 1.5}, "cannot convert float64 to int32"),
        ({"paused": "yes"}, "unrecognized type: bool"),
        ({"selector": []}, "cannot restore struct from: slice"),
        ({"selector": {"matchLabels": {"a": 1}}}, "cannot convert int64 to string"),
        ({"selector": {"matchLabels": "a"}}, "cannot restore map from string"),
        ({"selector": {"matchExpressions": {}}}, "cannot restore slice from map"),
        (None, ""),
    ],
)
def test_a_deployment(spec: Any, told: str) -> None:
    assert DEPLOYMENT is not None
    assert restoring.complaint({"spec": spec}, DEPLOYMENT) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("@@", "error decoding from json: illegal base64 data at input byte 0"),
        (5, "cannot restore slice from int64"),
        ("aGk=", ""),
    ],
)
def test_bytes(value: Any, told: str) -> None:
    assert CONFIG_MAP is not None
    assert restoring.complaint({"binaryData": {"a": value}}, CONFIG_MAP) == told

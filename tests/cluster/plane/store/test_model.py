"""The revision in an object's bytes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cluster.plane.store.model import HOLE, fill, hollow, reopened

TEXT = st.text(max_size=20) | st.sampled_from(["\0", '"\0"', '"resourceVersion":"1"', "\\"])


@given(TEXT, TEXT, st.integers(1, 10**12))
def test_only_the_resource_version_changes(label: str, data: str, revision: int) -> None:
    value: dict[str, Any] = {
        "apiVersion": "v1",
        "data": {"resourceVersion": data},
        "metadata": {"labels": {label: data}, "name": label, "resourceVersion": HOLE},
        "resourceVersion": data,
    }
    filled = fill(msgspec.json.encode(value), revision)
    value["metadata"]["resourceVersion"] = str(revision)
    assert msgspec.json.decode(filled) == value
    value["metadata"]["resourceVersion"] = "7"
    assert msgspec.json.decode(fill(hollow(filled), 7)) == value
    assert msgspec.json.decode(fill(reopened(filled, revision), 7)) == value


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"metadata":{"name":"a"}}', b'{"metadata":{"name":"a","resourceVersion":"5"}}'),
        (b'{"kind":"X"}', b'{"kind":"X","metadata":{"resourceVersion":"5"}}'),
        (
            b'{"metadata":{"resourceVersion":"3","name":"a"},"spec":{"resourceVersion":"3"}}',
            b'{"metadata":{"resourceVersion":"5","name":"a"},"spec":{"resourceVersion":"3"}}',
        ),
    ],
)
def test_an_object_can_be_written_again(data: bytes, expected: bytes) -> None:
    assert fill(hollow(data), 5) == expected

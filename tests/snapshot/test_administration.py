"""What a snapshot keeps of objects whose authors decide what they look like, and what it drops."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.snapshot.administration import UncheckedObject, as_custom_object
from kvestigate.snapshot.pods import HIDDEN, PodSpec

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["conditions", "parents", "type", "status", "phase", "health", "suspend",
                         "message", "lastTransitionTime", "reason", "x"]),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(JSON, JSON)
def test_no_status_is_too_odd(spec: Any, status: Any) -> None:
    body = msgspec.json.encode({"kind": "Thing", "spec": spec, "status": status})
    custom = as_custom_object(msgspec.json.decode(body, type=UncheckedObject))
    assert custom.kind == "Thing"
    for condition in custom.status.conditions:
        moment = condition.last_transition_time
        assert moment is None or moment.tzinfo is not None


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("DB_PASSWORD", "hunter2", HIDDEN),
        ("PLAIN", "hunter2", HIDDEN),
        ("EMPTY", "", ""),
        ("COPY", "$(DB_PASSWORD)", ""),
        ("NVIDIA_VISIBLE_DEVICES", "all", "all"),
    ],
)
def test_the_values_of_variables_are_dropped(name: str, value: str, kept: str) -> None:
    body = {"containers": [{"name": "main", "env": [{"name": name, "value": value}]}]}
    spec = msgspec.json.decode(msgspec.json.encode(body), type=PodSpec)
    assert spec.containers[0].env[0].value == kept
    assert "hunter2" not in repr(spec)

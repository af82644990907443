"""What a real API server sent in both forms, decoded to the same object."""

from __future__ import annotations

import base64
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cluster.plane.request.protobuf import envelope
from kvestigate.kube import facts, normal

RECORDED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("recorded.json").read_text())
BODIES = [base64.b64decode(each["protobuf"]) for each in RECORDED]


def normal_form(obj: dict[str, Any]) -> dict[str, Any]:
    group, _, version = obj["apiVersion"].rpartition("/")
    of = facts.for_kind(group, version, obj["kind"])
    assert of is not None
    return normal.normalised(obj, of)


@pytest.mark.parametrize("each", RECORDED, ids=lambda each: each["object"]["kind"])
def test_both_forms_are_one_object(each: dict[str, Any]) -> None:
    decoded = envelope.decode(base64.b64decode(each["protobuf"]), "", "")
    assert normal_form(decoded) == each["object"]


@given(body=st.sampled_from(BODIES), at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_damaged_body_is_refused_or_read_but_never_breaks(
    body: bytes, at: int, byte: int
) -> None:
    at %= len(body)
    damaged = body[:at] + bytes([byte]) + body[at + 1 :]
    with contextlib.suppress(envelope.Unrecognized, envelope.Undecodable):
        assert envelope.decode(damaged, "Pod", "v1")["kind"]


@given(body=st.sampled_from(BODIES), cut=st.integers(0, 10_000))
def test_a_body_cut_short_is_refused(body: bytes, cut: int) -> None:
    # Cut inside the object: after its identity, before the two empty fields that follow it.
    start, end = 6 + body[5], len(body) - 4
    with pytest.raises((envelope.Unrecognized, envelope.Undecodable)):
        envelope.decode(body[: start + 1 + cut % (end - start - 1)], "Pod", "v1")

"""An audit that does not tell of the whole fleet is refused, with the way out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kvestigate.errors import InputError, NoCluster, UsageError
from kvestigate.optimize.collect import AuditFile, FleetSource, from_audit, read
from tests.optimize.conftest import AUDIT

GAP = {"verb": "list", "resource": "pods", "cause": "denied", "message": "no"}


def test_exactly_one_source_is_named() -> None:
    for wrong in ({}, {"audit": AuditFile("{}"), "live": True}):
        with pytest.raises(UsageError) as refused:
            FleetSource(**wrong)  # type: ignore[arg-type]  # the values are of two types
        assert "--audit" in str(refused.value.hint)
        assert "--live" in str(refused.value.hint)


async def test_a_kept_audit_needs_no_cluster() -> None:
    found = await read(None, FleetSource(AuditFile(AUDIT.read_text())))
    assert (len(found.nodes), found.server) == (8, "https://gpu.example:6443")
    assert [pod.path for pod in found.nodes[7].pods] == ["serving/batch-0", "serving/batch-1"]
    with pytest.raises(NoCluster):
        await read(None, FleetSource(live=True))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "other/v1"}, "schema is 'other/v1'"),
        ({"namespace": "web"}, "is an audit of namespace 'web'"),
        ({"gaps": [GAP]}, "free GPUs are unknown: cannot list pods"),
        ({"reports": {}}, "is not a valid audit"),
        ({"captured_at": "yesterday"}, "is not a valid audit"),
    ],
)
def test_what_it_lacks_is_named(change: dict[str, Any], message: str) -> None:
    document = json.loads(AUDIT.read_text()) | change
    with pytest.raises(InputError, match=message) as refused:
        from_audit(json.dumps(document), "kept.json")
    assert "kept.json" in str(refused.value)
    assert refused.value.hint


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"'])
def test_what_is_no_audit_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        from_audit(text, "kept.json")


def test_a_gap_elsewhere_does_not_matter() -> None:
    document = json.loads(AUDIT.read_text()) | {"gaps": [GAP | {"resource": "secrets"}]}
    assert len(from_audit(json.dumps(document), "kept.json").nodes) == 8

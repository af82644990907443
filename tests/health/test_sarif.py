"""Findings as scanners read them."""

from __future__ import annotations

import json

import jsonschema_rs

from kvestigate.health.audit import examine
from kvestigate.health.registry import RULES
from kvestigate.health.sarif import to_sarif
from kvestigate.render.encode import to_json
from kvestigate.snapshot import listings
from tests.health.sarif_schema import SARIF
from tests.health.snapshots import snapshot
from tests.snapshot.objects import container, pod


def test_findings_point_at_their_rules_and_objects() -> None:
    pods = [pod("p", container(cpu="1", gpu="1")), pod("q", on="n")]
    audit = examine(snapshot({listings.PODS: pods}, denied=[listings.BUDGETS]), "https://x.test")
    log = json.loads(to_json(to_sarif(audit)))
    jsonschema_rs.validate(SARIF, log)
    (run,) = log["runs"]
    assert [it["id"] for it in run["tool"]["driver"]["rules"]] == [rule.name for rule in RULES]
    assert [(it["ruleId"], it["level"]) for it in run["results"]] == [
        ("gpu-not-offered", "error"),
        ("no-requests", "note"),
    ]
    for result in run["results"]:
        assert RULES[result["ruleIndex"]].name == result["ruleId"]
    where = run["results"][0]["locations"][0]["logicalLocations"][0]
    assert where["fullyQualifiedName"] == "default/Pod/p"
    (invocation,) = run["invocations"]
    told = [it["message"]["text"] for it in invocation["toolExecutionNotifications"]]
    assert "Listing poddisruptionbudgets.policy is forbidden" in told


def test_the_same_fault_has_the_same_fingerprint_and_another_another() -> None:
    def prints(*names: str) -> list[str]:
        given = {listings.PODS: [pod(name, on="n") for name in names]}
        run = to_sarif(examine(snapshot(given), "https://x.test"))["runs"][0]
        return [it["partialFingerprints"]["kvestigate/v1"] for it in run["results"]]

    assert prints("a") == prints("a")
    assert len(set(prints("a", "b"))) == 2

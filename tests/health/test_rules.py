"""Every rule by its examples: what it must report, and what it must leave alone.

An example is a file of `examples/`, named like its rule. `fires` and `silent` hold cases; a case
has the `objects` of a cluster as the server lists them. The time is 12:00 on 2026-03-01 (UTC).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kvestigate.health.cluster import Cluster
from kvestigate.health.registry import RULES
from tests.health.cluster_of import cluster_of

EXAMPLES = Path(__file__).parent / "examples"
BY_NAME = {rule.name: rule for rule in RULES}


def _cases(kind: str) -> list[Any]:
    return [
        pytest.param(path.stem, case, id=f"{path.stem}: {case['what']}")
        for path in sorted(EXAMPLES.glob("*.yaml"))
        for case in yaml.safe_load(path.read_text())[kind]
    ]


@pytest.mark.parametrize(("rule", "case"), _cases("fires"))
def test_it_is_reported(rule: str, case: dict[str, Any]) -> None:
    """`says` are parts of the report, in any letter case; `severity` and `causes` are optional."""
    faults = list(BY_NAME[rule].faults(Cluster(cluster_of(case["objects"]))))
    assert faults, "nothing was reported"
    reports = [f"{fault.subject}: {fault.evidence} {fault.why}".casefold() for fault in faults]
    wanted = [str(part).casefold() for part in case["says"]]
    assert any(all(part in report for part in wanted) for report in reports), reports
    if "severity" in case:
        assert case["severity"] in {fault.severity.value for fault in faults}
    causes = {str(cause) for fault in faults for cause in fault.causes}
    assert causes >= set(case.get("causes", ())), causes
    assert all(fault.command for fault in faults)


@pytest.mark.parametrize(("rule", "case"), _cases("silent"))
def test_it_is_left_alone(rule: str, case: dict[str, Any]) -> None:
    assert list(BY_NAME[rule].faults(Cluster(cluster_of(case["objects"])))) == []

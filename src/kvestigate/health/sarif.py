"""Findings in SARIF 2.1.0, which code scanners and CI systems read. Pure.

A cluster has no files, so the location of a finding is logical: namespace, kind and name.
"""

from __future__ import annotations

import hashlib
from typing import Any

from kvestigate import __version__
from kvestigate.health.audit import Audit
from kvestigate.health.model import Finding, Subject
from kvestigate.health.registry import RULES
from kvestigate.health.rule import Rule
from kvestigate.render.severity import Severity
from kvestigate.reports.model import gap_line

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.CRITICAL: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def to_sarif(audit: Audit) -> dict[str, Any]:
    """A log with one run."""
    driver = {
        "name": "kvestigate",
        "version": __version__,
        "rules": [_rule(rule) for rule in RULES],
    }
    invocation = {
        # False would mean that the run failed; what was not read is listed below instead.
        "executionSuccessful": True,
        "endTimeUtc": f"{audit.captured_at:%Y-%m-%dT%H:%M:%SZ}",
        "toolExecutionNotifications": [
            {"level": "warning", "message": {"text": gap_line(gap, brief=True)}}
            for gap in audit.gaps
        ],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "results": [_result(finding) for finding in audit.findings],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.summary},
        "properties": {"tags": [rule.profile.value]},
    }


def _result(finding: Finding) -> dict[str, Any]:
    words = f"{finding.subject}: {_sentence(finding.evidence)} {finding.why} Try: {finding.command}"
    return {
        "ruleId": finding.rule,
        "ruleIndex": [rule.name for rule in RULES].index(finding.rule),
        "level": _LEVELS[finding.severity],
        "message": {"text": words},
        "locations": [{"logicalLocations": [_location(finding.subject)]}],
        # The same problem of the same object is the same result in the next run.
        "partialFingerprints": {"kvestigate/v1": _fingerprint(finding)},
    }


def _sentence(evidence: str) -> str:
    """Evidence may end with a message of Kubernetes or of a container, without a full stop."""
    return evidence if evidence.endswith((".", "!", "?")) else f"{evidence}."


def _location(subject: Subject) -> dict[str, str]:
    return {
        "name": subject.name,
        "fullyQualifiedName": _path(subject),
        "kind": "resource",
    }


def _path(subject: Subject) -> str:
    parts = (subject.namespace, subject.kind, subject.name, subject.container)
    return "/".join(part for part in parts if part)


def _fingerprint(finding: Finding) -> str:
    return hashlib.sha256(finding.key.encode()).hexdigest()

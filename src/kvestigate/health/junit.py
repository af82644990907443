"""Findings as a JUnit report, which every CI system shows. Pure.

A rule is a test: it passes, it fails once for each finding that nobody has accepted, or it is
skipped because something it needs could not be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from kvestigate.health.audit import Audit, unaccepted
from kvestigate.health.model import Finding
from kvestigate.health.registry import RULES
from kvestigate.health.rule import Rule
from kvestigate.render.blocks import printable


def to_junit(audit: Audit) -> bytes:
    """One suite, with the rules as its cases."""
    cases = [case for rule in RULES for case in _cases(rule, audit)]
    suite = Element(
        "testsuite",
        name="kvestigate audit",
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        skipped=str(sum(case.find("skipped") is not None for case in cases)),
        timestamp=f"{audit.captured_at:%Y-%m-%dT%H:%M:%S}",
        hostname=printable(audit.server),
    )
    suite.extend(cases)
    root = Element("testsuites")
    root.append(suite)
    indent(root)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _cases(rule: Rule, audit: Audit) -> Iterator[Element]:
    findings = [finding for finding in unaccepted(audit) if finding.rule == rule.name]
    for finding in findings:
        case = Element("testcase", classname=rule.name, name=printable(str(finding.subject)))
        failure = SubElement(case, "failure", type=finding.severity.value)
        failure.set("message", printable(finding.evidence))
        failure.text = printable(_details(finding))
        yield case
    if not findings:
        case = Element("testcase", classname=rule.name, name=rule.summary)
        if rule.name in audit.skipped:
            SubElement(case, "skipped", message="something that the rule needs was not read")
        yield case


def _details(finding: Finding) -> str:
    effects = (f"so: {effect.subject}: {effect.evidence}" for effect in finding.effects)
    lines = (finding.evidence, f"why: {finding.why}", *effects, f"try: {finding.command}")
    return "\n".join(lines)

"""When an audit fails for CI, and what may be accepted."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring

import msgspec
import pytest

from kvestigate.errors import InputError
from kvestigate.health.audit import Audit, accept, examine
from kvestigate.health.difference import keys, parse
from kvestigate.health.gate import objections
from kvestigate.health.junit import to_junit
from kvestigate.health.page import to_page
from kvestigate.health.rendering import audit_blocks, finding_blocks
from kvestigate.health.waivers import read_waivers
from kvestigate.render.encode import to_json
from kvestigate.render.plain import to_text
from kvestigate.snapshot import listings
from kvestigate.snapshot.gaps import Cause, Gap
from tests.health.cluster_of import cluster_of
from tests.health.snapshots import snapshot

WAIVER = """
waivers:
  - rule: crash-loop
    subject: Pod shop/web-*
    owner: ada@example.com
    reason: replaced next month
    expires: {expires}
"""


def crashing(**annotations: str) -> Audit:
    pod = {
        "kind": "Pod",
        "metadata": {"name": "web-0", "namespace": "shop", "annotations": annotations},
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
        },
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
            ],
        },
    }
    return examine(cluster_of([pod]), "https://x.test")


def fails(audit: Audit, limit: str = "critical", *, allow_gaps: bool = False) -> bool:
    return bool(objections(audit, limit, allow_gaps=allow_gaps))


def test_a_finding_fails_it() -> None:
    assert fails(crashing())
    assert not fails(examine(cluster_of([]), "https://x.test"))


def test_only_what_is_new_fails_with_a_baseline() -> None:
    known = keys(parse(to_json(crashing()), "monday.json"))
    audit = accept(crashing(), (), known)
    assert not fails(audit)
    assert "Accepted: crash-loop, Pod shop/web-0 (in the baseline)." in to_text(
        finding_blocks(audit)
    )
    assert "CRITICAL" not in to_text(finding_blocks(audit))


@pytest.mark.parametrize(("expires", "counts"), [("2026-03-01", True), ("2026-02-28", False)])
def test_a_waiver_counts_until_its_last_day(expires: str, counts: bool) -> None:
    waivers = read_waivers(WAIVER.format(expires=expires).encode(), "waivers.yaml")
    assert fails(accept(crashing(), waivers, ())) is not counts


def test_an_annotation_waives_if_it_says_who_why_and_until_when() -> None:
    whole = {
        "kvestigate.dev/waive": "no-requests, crash-loop",
        "kvestigate.dev/waive-owner": "ada",
        "kvestigate.dev/waive-reason": "known",
        "kvestigate.dev/waive-expires": "2026-03-05",
    }
    assert not fails(crashing(**whole))
    for missing in whole:
        part = {name: value for name, value in whole.items() if name != missing}
        audit = crashing(**part)
        assert fails(audit), missing
        said = " ".join(to_text(audit_blocks(audit)).split())
        part_missing = missing.rpartition("-")[2]
        ignored = f"Pod shop/web-0 does not count: {part_missing}"
        assert (ignored in said) is (missing != "kvestigate.dev/waive"), said


def test_every_mistake_of_a_waiver_is_told() -> None:
    wrong = b"waivers:\n- rule: crash-lop\n  owner: ''\n  expires: soon\n"
    with pytest.raises(InputError) as refused:
        read_waivers(wrong, "waivers.yaml")
    said = str(refused.value)
    for part in ("4 mistakes", "yaml:2", "crash-lop", "owner: is empty", "'soon'", "reason"):
        assert part in said


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ("rule: crash-lop", "did you mean 'crash-loop'?"),
        ("expires: soon", "waivers.yaml:7: waivers[0].expires: 'soon' is not a date"),
        ("owner: ''", "waivers[0].owner: is empty"),
        ("because: x", "because"),
    ],
)
def test_a_mistake_in_a_waiver_is_told(wrong: str, complaint: str) -> None:
    field = wrong.partition(":")[0]
    lines = WAIVER.format(expires="2026-12-31").splitlines()
    changed = [
        line.replace(line.lstrip(" -"), wrong)
        if line.lstrip(" -").startswith(f"{field}:")
        else line
        for line in lines
    ]
    if changed == lines:
        changed.append(f"    {wrong}")
    with pytest.raises(InputError) as refused:
        read_waivers("\n".join(changed).encode(), "waivers.yaml")
    assert complaint in f"{refused.value} {refused.value.hint}"


def test_a_rule_that_could_not_run_fails_unless_that_is_allowed() -> None:
    audit = examine(snapshot({}, denied=[listings.PODS]), "https://x.test")
    assert fails(audit)
    assert not fails(audit, allow_gaps=True)
    assert not fails(examine(snapshot({}), "https://x.test")), "metrics are only not served"


def partly_read(cause: Cause) -> Audit:
    seen = snapshot({})
    gap = Gap("list", "widgets.example.com", cause, "read 500 of 900")
    seen.parts[listings.CUSTOM_OBJECTS] = (gap,)
    return examine(seen, "https://x.test")


@pytest.mark.parametrize("cause", [Cause.FAILED, Cause.UNAVAILABLE, Cause.DENIED])
def test_a_kind_that_was_not_read_fails_unless_that_is_allowed(cause: Cause) -> None:
    audit = partly_read(cause)
    assert objections(audit, "critical", allow_gaps=False) == [
        "3 rules ran without all objects: widgets.example.com not read"
    ]
    assert not fails(audit, allow_gaps=True)
    shown = to_text(audit_blocks(audit))
    assert "Checked in part: custom-resource, custom-resource-behind, route-parent (" in " ".join(
        shown.split()
    )
    assert "No problems found in what could be read" in to_text(finding_blocks(audit))
    assert "widgets.example.com" in to_page(audit)
    assert "widgets.example.com" in to_json(audit).decode()


def test_a_list_that_stopped_at_its_limit_is_told_and_passes() -> None:
    audit = partly_read(Cause.TRUNCATED)
    assert not fails(audit)
    line = "Listing widgets.example.com stopped early (read 500 of 900)"
    assert line in to_text(audit_blocks(audit))
    assert line in to_page(audit)


def test_junit_has_a_case_for_every_rule() -> None:
    audit = crashing()
    suite = fromstring(to_junit(audit))[0]
    cases = {case.get("classname"): case for case in suite}
    assert suite.get("failures") == "1"
    failure = cases["crash-loop"].find("failure")
    assert failure is not None
    assert failure.get("type") == "critical"
    assert cases["image-pull"].find("failure") is None
    assert cases["memory-near-limit"].find("skipped") is not None


def test_an_audit_survives_its_file() -> None:
    audit = accept(crashing(), read_waivers(WAIVER.format(expires="2026-03-09").encode(), "w"), ())
    read = msgspec.json.decode(to_json(audit), type=Audit)
    assert (read.findings, read.accepted) == (audit.findings, audit.accepted)

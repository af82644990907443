"""What has one cause is one finding, and no fault is ever lost."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from kvestigate.health.cluster import Cluster
from kvestigate.health.diagnosis import as_found, diagnose
from kvestigate.health.model import Fault, Finding, Subject
from kvestigate.render.severity import Severity
from tests.health.cluster_of import cluster_of

NAMES = [Subject("Service", name, "shop") for name in "abcdef"]


def fault(
    subject: Subject,
    *causes: Subject,
    severity: Severity = Severity.WARNING,
    rule: str = "r",
    since: datetime | None = None,
) -> Fault:
    return Fault(
        rule=rule,
        severity=severity,
        subject=subject,
        evidence="e",
        why="w",
        command="c",
        since=since,
        causes=causes,
    )


def diagnosed(*faults: Fault) -> tuple[Finding, ...]:
    return diagnose(Cluster(cluster_of([])), faults)


SECRET = Subject("Secret", "db", "shop")
DEPLOYMENT = Subject("Deployment", "api", "shop")
SERVICE = Subject("Service", "api", "shop")


def test_a_chain_is_one_finding_about_its_root() -> None:
    (finding,) = diagnosed(
        fault(SERVICE, DEPLOYMENT, severity=Severity.CRITICAL),
        fault(DEPLOYMENT, SECRET),
        fault(SECRET),
    )
    assert finding.subject == SECRET
    assert {effect.subject for effect in finding.effects} == {DEPLOYMENT, SERVICE}
    assert finding.severity is Severity.CRITICAL, "the worst that follows from it"


def test_a_cause_without_a_fault_explains_nothing() -> None:
    (finding,) = diagnosed(fault(SERVICE, DEPLOYMENT))
    assert finding.subject == SERVICE


def test_two_causes_share_an_effect() -> None:
    findings = diagnosed(fault(SERVICE, DEPLOYMENT, SECRET), fault(DEPLOYMENT), fault(SECRET))
    assert {finding.subject for finding in findings} == {DEPLOYMENT, SECRET}
    assert all(finding.effects[0].subject == SERVICE for finding in findings)


def test_what_users_notice_comes_first() -> None:
    findings = diagnosed(fault(SECRET), fault(DEPLOYMENT), fault(SERVICE, DEPLOYMENT))
    assert [finding.subject for finding in findings] == [DEPLOYMENT, SECRET]


def test_replicas_that_fail_alike_are_one_finding_about_their_workload() -> None:
    owner = {"kind": "ReplicaSet", "name": "api-5d", "controller": True}
    labels = {"pod-template-hash": "5d"}
    pods = [
        {
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "shop",
                "labels": labels,
                "ownerReferences": [owner],
            },
        }
        for name in ("api-5d-1", "api-5d-2")
    ]
    early, late = (datetime(2026, 3, 1, hour, tzinfo=UTC) for hour in (8, 9))
    first, second = (
        fault(Subject("Pod", str(pod["metadata"]["name"]), "shop", "main"), since=since)  # type: ignore[index]
        for pod, since in zip(pods, (late, early), strict=True)
    )
    (finding,) = diagnose(Cluster(cluster_of(pods)), [first, second])
    assert (finding.subject, finding.since) == (DEPLOYMENT, early)
    assert finding.evidence == "Pod api-5d-2 and 1 more: e"
    assert [pod.name for pod in finding.objects] == ["api-5d-1", "api-5d-2"]


@given(
    st.lists(
        st.builds(
            fault,
            st.sampled_from(NAMES),
            st.sampled_from(NAMES),
            severity=st.sampled_from(Severity),
            rule=st.sampled_from("rst"),
        ),
        max_size=8,
    )
)
def test_no_fault_is_lost_whatever_causes_what(faults: list[Fault]) -> None:
    """Also in a circle, where everything causes everything."""
    findings = diagnosed(*faults)
    told = {(finding.rule, finding.subject) for finding in findings} | {
        (effect.rule, effect.subject) for finding in findings for effect in finding.effects
    }
    assert told == {(fault.rule, fault.subject) for fault in faults}
    assert [finding.severity.rank for finding in findings] == sorted(
        finding.severity.rank for finding in findings
    )
    assert len(as_found(faults)) == len(faults)

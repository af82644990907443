"""Which certificates the signers issue, for how long, and when requests go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kvestigate.cluster.controllers.certificates import requests
from kvestigate.cluster.controllers.certificates.requests import (
    CLIENT,
    KUBELET_CLIENT,
    KUBELET_SERVING,
    LEGACY,
    Subject,
)
from kvestigate.cluster.controllers.objects import (
    DatedCondition,
    SigningRequest,
    SigningRequestStatus,
)
from kvestigate.kube.views.meta import Metadata

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NODE = Subject("system:node:n", ("system:nodes",))
SERVER = Subject("system:node:n", ("system:nodes",), {"DNS", "IP"})
AS_CLIENT = ["digital signature", "client auth"]
AS_SERVER = ["digital signature", "key encipherment", "server auth"]


@pytest.mark.parametrize(
    ("signer", "subject", "usages", "problem"),
    [
        (CLIENT, Subject("jane", ()), ["client auth"], ""),
        (CLIENT, Subject("jane", ()), ["client auth", "key encipherment"], ""),
        (
            CLIENT,
            Subject("jane", ()),
            ["server auth"],
            "invalid usage for client certificate: server auth",
        ),
        (
            CLIENT,
            Subject("jane", ()),
            ["digital signature"],
            "missing required usage for client certificate: client auth",
        ),
        (KUBELET_CLIENT, NODE, AS_CLIENT, ""),
        (KUBELET_CLIENT, SERVER, AS_CLIENT, "DNS subjectAltNames are not allowed"),
        (
            KUBELET_CLIENT,
            Subject("n", ("system:nodes",)),
            AS_CLIENT,
            "subject common name does not begin with system:node:",
        ),
        (
            KUBELET_CLIENT,
            Subject("system:node:n", ("system:nodes", "system:masters")),
            AS_CLIENT,
            "subject organization is not system:nodes",
        ),
        (
            KUBELET_CLIENT,
            NODE,
            AS_SERVER,
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (KUBELET_SERVING, SERVER, AS_SERVER, ""),
        (KUBELET_SERVING, NODE, AS_SERVER, "DNS or IP subjectAltName is required"),
        (
            KUBELET_SERVING,
            Subject("system:node:n", ("system:nodes",), {"IP", "URI"}),
            AS_SERVER,
            "URI subjectAltNames are not allowed",
        ),
        (
            KUBELET_SERVING,
            SERVER,
            AS_CLIENT,
            "usages did not match [digital signature key encipherment server auth]",
        ),
        (LEGACY, Subject("", ()), ["any"], ""),
    ],
)
def test_a_signer_judges_subject_and_usages(
    signer: str, subject: Subject, usages: list[str], problem: str
) -> None:
    assert requests.problem(signer, subject, usages) == problem


@pytest.mark.parametrize(
    ("seconds", "lifetime"),
    [
        (None, timedelta(days=365, minutes=-5)),
        (3600, timedelta(hours=1)),
        (1, timedelta(minutes=10)),
        (24 * 3600, timedelta(days=1, minutes=-5)),
        (10**9, timedelta(days=365, minutes=-5)),
    ],
)
def test_the_lifetime_is_what_was_asked_for_within_bounds(
    seconds: int | None, lifetime: timedelta
) -> None:
    begin, end = requests.validity(seconds, NOW, NOW + timedelta(days=3650))
    assert (begin, end) == (NOW - timedelta(minutes=5), NOW + lifetime)


def test_no_certificate_outlives_its_authority() -> None:
    assert requests.validity(None, NOW, NOW + timedelta(days=1))[1] == NOW + timedelta(days=1)


@pytest.mark.parametrize(
    ("condition", "certificate", "hours"),
    [
        ("", "", 24),
        ("Approved", "", 24),
        ("Approved", "x", 1),
        ("Denied", "", 1),
        ("Failed", "", 1),
    ],
)
def test_requests_go_after_a_while(condition: str, certificate: str, hours: int) -> None:
    dated = [DatedCondition(condition, "True", "", "", NOW, NOW)] if condition else []
    request = SigningRequest(
        Metadata(creation_timestamp=NOW),
        status=SigningRequestStatus(tuple(dated), certificate),
    )
    assert requests.keeps_until(request) == NOW + timedelta(hours=hours)

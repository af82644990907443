"""Which pods fit a Pod Security level, where the real server's answers are not recorded."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.cluster.plane.admission.pod_security.levels import Level, Standard
from kvestigate.cluster.plane.admission.pod_security.registry import violations

SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
SAFE: dict[str, Any] = {
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}


def _pod(spec: dict[str, Any] | None = None, **security: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "securityContext": security}
    return {"metadata": {}, "spec": {"containers": [container], **(spec or {})}}


@pytest.mark.parametrize(
    ("pod", "level", "minor", "reasons"),
    [
        (_pod(privileged=True), Level.privileged, None, []),
        (_pod(privileged=True), Level.baseline, 0, ["privileged"]),
        (_pod(**SAFE), Level.restricted, None, []),
        (_pod(), Level.restricted, 7, ["runAsNonRoot != true"]),
        (_pod({"os": {"name": "windows"}}), Level.restricted, None, ["runAsNonRoot != true"]),
        (_pod({"hostUsers": False}, **{**SAFE, "runAsUser": 0}), Level.restricted, None, []),
        (
            _pod({"hostUsers": False}, **{**SAFE, "runAsUser": 0}),
            Level.restricted,
            34,
            ["runAsUser=0"],
        ),
        (_pod({"hostUsers": False}, procMount="Unmasked"), Level.baseline, 34, ["procMount"]),
        (_pod({"hostUsers": False}, procMount="Unmasked"), Level.baseline, 35, []),
        (
            _pod({"hostUsers": False}, **SAFE, procMount="Unmasked"),
            Level.restricted,
            35,
            ["procMount"],
        ),
        ({**_pod(), "metadata": {"annotations": {SECCOMP: "bad"}}}, Level.baseline, 19, []),
        (
            {**_pod(), "metadata": {"annotations": {SECCOMP: "bad"}}},
            Level.baseline,
            18,
            ["seccompProfile"],
        ),
        (
            _pod({"volumes": [{"name": "v", "hostPath": None}]}, **SAFE),
            Level.restricted,
            None,
            ["restricted volume types"],
        ),
    ],
)
def test_a_pod_violates_a_level(
    pod: dict[str, Any], level: Level, minor: int | None, reasons: list[str]
) -> None:
    assert [violation.reason for violation in violations(pod, Standard(level, minor))] == reasons

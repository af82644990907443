"""Which checks make up a level, in the order in which Kubernetes tells what it found. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from kvestigate.cluster.plane.admission.pod_security import checks
from kvestigate.cluster.plane.admission.pod_security.levels import Level, Standard
from kvestigate.cluster.plane.admission.pod_security.parts import PodView, Violation
from kvestigate.cluster.plane.model.kind import Object

CheckFunction: TypeAlias = Callable[[PodView], Violation | None]
NEWEST = 35
"""The minor version that changed a check last; later versions are like it."""


class Check(NamedTuple):
    level: Level
    revisions: dict[int, CheckFunction]
    """The check by the minor version of Kubernetes from which on it is the check."""
    replaces: CheckFunction | None = None
    """The check of the baseline level that this stricter one makes needless."""


def _unless_windows(check: CheckFunction) -> CheckFunction:
    return lambda pod: None if pod.is_windows else check(pod)


def _unless_own_users(check: CheckFunction) -> CheckFunction:
    return lambda pod: None if pod.has_own_users else check(pod)


_SYSCTLS = (
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
)
_SYSCTLS_27 = (*_SYSCTLS, "net.ipv4.ip_local_reserved_ports")
_SYSCTLS_29 = (
    *_SYSCTLS_27,
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
)
_SYSCTLS_32 = (*_SYSCTLS_29, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")
_TYPES = ("container_t", "container_init_t", "container_kvm_t")
_proc_mount_35 = _unless_own_users(checks.proc_mount)

CHECKS = (
    Check(Level.baseline, {0: checks.app_armor}),
    Check(Level.baseline, {0: checks.default_capabilities}),
    Check(Level.baseline, {0: checks.host_namespaces}),
    Check(Level.baseline, {0: checks.host_paths}),
    Check(Level.baseline, {0: checks.host_ports}),
    Check(Level.baseline, {34: checks.probe_hosts}),
    Check(Level.baseline, {0: checks.privileged}),
    Check(Level.baseline, {0: checks.proc_mount, 35: _proc_mount_35}),
    Check(
        Level.baseline,
        {0: checks.selinux(*_TYPES), 31: checks.selinux(*_TYPES, "container_engine_t")},
    ),
    Check(Level.baseline, {0: checks.seccomp_annotations, 19: checks.seccomp_allowed}),
    Check(
        Level.baseline,
        {
            0: checks.sysctls(*_SYSCTLS),
            27: checks.sysctls(*_SYSCTLS_27),
            29: checks.sysctls(*_SYSCTLS_29),
            32: checks.sysctls(*_SYSCTLS_32),
        },
    ),
    Check(Level.baseline, {0: checks.host_process}),
    Check(Level.restricted, {8: checks.no_escalation, 25: _unless_windows(checks.no_escalation)}),
    Check(
        Level.restricted,
        {22: checks.dropped_capabilities, 25: _unless_windows(checks.dropped_capabilities)},
        replaces=checks.default_capabilities,
    ),
    Check(Level.restricted, {35: checks.proc_mount}, replaces=_proc_mount_35),
    Check(Level.restricted, {0: checks.volume_types}, replaces=checks.host_paths),
    Check(Level.restricted, {0: checks.not_root, 35: _unless_own_users(checks.not_root)}),
    Check(
        Level.restricted, {23: checks.not_user_zero, 35: _unless_own_users(checks.not_user_zero)}
    ),
    Check(
        Level.restricted,
        {19: checks.seccomp_required, 25: _unless_windows(checks.seccomp_required)},
        replaces=checks.seccomp_allowed,
    ),
)
"""Baseline before restricted, each in the order of upstream's names of the checks."""


def violations(pod: Object, standard: Standard) -> list[Violation]:
    """Why a pod, or a pod template, does not fit a level."""
    if standard.level is Level.privileged:
        return []
    minor = NEWEST if standard.minor is None else min(standard.minor, NEWEST)
    current = [
        (check, function)
        for check in CHECKS
        if check.level <= standard.level and (function := _revision(check, minor)) is not None
    ]
    replaced = {check.replaces for check, _ in current}
    view = PodView.of(pod)
    results = [function(view) for _, function in current if function not in replaced]
    return [violation for violation in results if violation is not None]


def _revision(check: Check, minor: int) -> CheckFunction | None:
    """The check as it was in a version; None before the check was there."""
    starts = [start for start in check.revisions if start <= minor]
    return check.revisions[max(starts)] if starts else None

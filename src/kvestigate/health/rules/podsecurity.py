"""Workloads that can leave their container, by the Pod Security Standards. Pure.

What lets a container take over its node is reported for ordinary workloads. Namespaces of
Kubernetes itself and DaemonSets, which are agents of their nodes, are left out unless the profile
is asked for. The levels `baseline` and `restricted` as a whole are advice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Profile, Subject
from kvestigate.health.rule import Rule, rule
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.pods import Confinement, Container, PodSpec

_TEMPLATES = (
    listings.DEPLOYMENTS,
    listings.STATEFUL_SETS,
    listings.DAEMON_SETS,
    listings.REPLICA_SETS,
    listings.JOBS,
    listings.CRON_JOBS,
)
SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
_RUNTIME = re.compile(
    r"/(docker|containerd/containerd|crio/crio|cri-dockerd|podman/podman|dockershim)\.sock$"
)
_SENSITIVE = (
    "/", "/boot", "/dev", "/etc", "/home", "/lib", "/proc", "/root", "/run", "/sys", "/usr", "/var",
    "/var/run", "/var/lib", "/var/lib/kubelet", "/var/lib/docker", "/var/lib/containerd",
    "/var/lib/etcd", "/run/containerd", "/var/run/containerd", "/bin", "/sbin", "/opt/cni",
    "/var/lib/rancher", "/run/crio", "/var/run/crio",
)  # fmt: skip
_SENSITIVE_BELOW = ("/etc/", "/root/", "/proc/", "/var/lib/kubelet/", "/var/lib/etcd/", "/boot/")
_HARMLESS = {"/etc/localtime", "/etc/timezone", "/etc/ssl/certs", "/etc/pki", "/etc/machine-id"}
_DANGEROUS = {
    "ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_PTRACE", "SYS_RAWIO", "SYS_BOOT", "DAC_READ_SEARCH",
    "BPF", "MAC_ADMIN", "MAC_OVERRIDE", "SYSLOG", "PERFMON",
}  # fmt: skip
_BASELINE = {
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
    "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
}  # fmt: skip
_SAFE_SYSCTLS = {
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
}  # fmt: skip

Violations = Callable[[PodSpec], Iterator[str]]


def command(subject: Subject) -> str:
    return f"kubectl -n {subject.namespace} get {subject.kind.lower()} {subject.name} -o yaml"


def _checking(
    name: str, summary: str, violations: Violations, why: str, *, strict: bool = False
) -> Rule:
    """A rule with one finding for each workload."""

    @rule(name, summary, listings.PODS, uses=_TEMPLATES, profile=Profile.SECURITY, strict=strict)
    def check(cluster: Cluster) -> Iterator[Fault]:
        for subject, spec in cluster.templates():
            agent = subject.kind == "DaemonSet" and not strict
            if subject.namespace in SYSTEM or agent:
                continue
            said = list(dict.fromkeys(violations(spec)))
            if said:
                yield Fault(
                    severity=Severity.INFO if strict else Severity.WARNING,
                    subject=subject,
                    evidence=f"{'; '.join(said)}.",
                    why=why,
                    command=command(subject),
                )

    return check


def _names(containers: list[Container]) -> str:
    names = ", ".join(container.name for container in containers)
    return f"Container {names}" if len(containers) == 1 else f"Containers {names}"


def _privileged(spec: PodSpec) -> Iterator[str]:
    found = [one for one in spec.all_containers if one.security_context.privileged]
    if found:
        verb = "runs" if len(found) == 1 else "run"
        yield f"{_names(found)} {verb} privileged (securityContext.privileged)"


def _host_namespaces(spec: PodSpec) -> Iterator[str]:
    if spec.host_pid:
        yield "The pod shares the host's processes (hostPID)"
    if spec.host_ipc:
        yield "The pod shares the host's inter-process communication (hostIPC)"
    if spec.host_network:
        yield "The pod shares the host's network (hostNetwork)"


def _host_paths(spec: PodSpec) -> Iterator[str]:
    for volume in spec.volumes:
        path = volume.host_path.path if volume.host_path is not None else ""
        if _RUNTIME.search(path):
            yield f"Volume {volume.name} mounts the container runtime's socket {path}"
        elif path and _is_sensitive(path):
            yield f"Volume {volume.name} mounts {path} of the host (hostPath)"


def _is_sensitive(path: str) -> bool:
    whole = path.rstrip("/") or "/"
    if whole in _HARMLESS:
        return False
    return whole in _SENSITIVE or whole.startswith(_SENSITIVE_BELOW)


def _added(container: Container) -> list[str]:
    return [name.removeprefix("CAP_") for name in container.security_context.capabilities.add]


def _capabilities(spec: PodSpec) -> Iterator[str]:
    for container in spec.all_containers:
        dangerous = [name for name in _added(container) if name in _DANGEROUS]
        if dangerous:
            yield f"Container {container.name} adds the capability {', '.join(dangerous)}"


def _baseline(spec: PodSpec) -> Iterator[str]:
    for check in (_privileged, _host_namespaces):
        yield from check(spec)
    for volume in spec.volumes:
        if volume.host_path is not None:
            yield f"volume {volume.name} mounts {volume.host_path.path} of the host"
    for container in spec.all_containers:
        yield from _container_baseline(spec, container)
    own = spec.security_context
    for sysctl in own.sysctls:
        if sysctl.name not in _SAFE_SYSCTLS:
            yield f"the pod sets the sysctl {sysctl.name}"
    if _unconfined(own.seccomp_profile, own.app_armor_profile):
        yield "the pod runs without seccomp or AppArmor (Unconfined)"


def _container_baseline(spec: PodSpec, container: Container) -> Iterator[str]:
    security, name = container.security_context, container.name
    more = [added for added in _added(container) if added not in _BASELINE]
    if more:
        yield f"container {name} adds the capability {', '.join(more)}"
    if any(port.host_port for port in container.ports) and not spec.host_network:
        yield f"container {name} takes a port of the host (hostPort)"
    if security.proc_mount not in ("", "Default"):
        yield f"container {name} has procMount {security.proc_mount}"
    if _unconfined(security.seccomp_profile, security.app_armor_profile):
        yield f"container {name} runs without seccomp or AppArmor (Unconfined)"


def _unconfined(*profiles: Confinement | None) -> bool:
    return any(profile is not None and profile.type == "Unconfined" for profile in profiles)


def _restricted(spec: PodSpec) -> Iterator[str]:
    for container in spec.all_containers:
        missing = [*_unrestricted(spec, container)]
        if missing:
            yield f"container {container.name} lacks {', '.join(missing)}"


def _unrestricted(spec: PodSpec, container: Container) -> Iterator[str]:
    security, pod = container.security_context, spec.security_context
    if security.allow_privilege_escalation is not False:
        yield "allowPrivilegeEscalation: false"
    if "ALL" not in security.capabilities.drop:
        yield "capabilities.drop: [ALL]"
    if (security.seccomp_profile or pod.seccomp_profile) is None:
        yield "seccompProfile"
    if _may_be_root(spec, container):
        yield "runAsNonRoot: true"


def _may_be_root(spec: PodSpec, container: Container) -> bool:
    own, pod = container.security_context, spec.security_context
    non_root = pod.run_as_non_root if own.run_as_non_root is None else own.run_as_non_root
    user = pod.run_as_user if own.run_as_user is None else own.run_as_user
    return not non_root and not user


def _root(spec: PodSpec) -> Iterator[str]:
    found = [container for container in spec.containers if _may_be_root(spec, container)]
    if found:
        yield f"{_names(found)} may run as root (neither runAsNonRoot nor runAsUser is set)"


RULES = (
    _checking(
        "privileged",
        "A container is privileged.",
        _privileged,
        "Whoever gets into the container controls the node (CIS 5.2.2, Pod Security Standards: "
        "baseline).",
    ),
    _checking(
        "host-namespaces",
        "A pod shares the processes, the IPC or the network of its node.",
        _host_namespaces,
        "The container sees what belongs to other pods and to the node (CIS 5.2.3, 5.2.4, 5.2.5, "
        "Pod Security Standards: baseline).",
    ),
    _checking(
        "host-path",
        "A pod mounts a directory of its node from which it can take over the node.",
        _host_paths,
        "Whoever gets into the container can take over the node (CIS 5.2.12, Pod Security "
        "Standards: baseline).",
    ),
    _checking(
        "capabilities",
        "A container adds a capability with which it can take over its node.",
        _capabilities,
        "Whoever gets into the container can take over the node (CIS 5.2.9, Pod Security "
        "Standards: baseline).",
    ),
    _checking(
        "pod-security-baseline",
        "A workload does not meet the Pod Security Standard baseline.",
        _baseline,
        "A namespace that enforces the level baseline refuses these pods.",
        strict=True,
    ),
    _checking(
        "pod-security-restricted",
        "A workload does not meet the Pod Security Standard restricted.",
        _restricted,
        "A namespace that enforces the level restricted refuses these pods (CIS 5.2.6, 5.2.10, "
        "5.7.2).",
        strict=True,
    ),
    _checking(
        "run-as-root",
        "A container may run as root.",
        _root,
        "An error of the kernel or of the runtime lets root out of the container (CIS 5.2.7, NSA: "
        "non-root containers).",
        strict=True,
    ),
)

"""The checks of Pod Security, in Kubernetes' words. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable

from kvestigate.cluster.plane.admission.pod_security.parts import (
    PodView,
    Violation,
    containers,
    plural,
    quoted,
    security,
    setters,
)
from kvestigate.cluster.plane.model.kind import Object

_DEFAULT_CAPABILITIES = frozenset(
    (
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    )
)
_PROFILES = ("RuntimeDefault", "Localhost")
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_ALLOWED_VOLUMES = frozenset(
    (
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    )
)


def app_armor(pod: PodView) -> Violation | None:
    bad = [
        (setter, profile.get("type", ""))
        for setter, profile in pod.settings("appArmorProfile")
        if profile.get("type") not in _PROFILES
    ]
    annotations = sorted(
        f"{key}={json.dumps(value)}"
        for key, value in pod.annotations.items()
        if key.startswith(_APPARMOR)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    parts = [setters(setter for setter, _ in bad)] if bad else []
    if annotations:
        parts.append(plural("annotation", annotations))
    values = [*sorted({value for _, value in bad}), *annotations]
    if not values:
        return None
    detail = f"{' and '.join(parts)} must not set AppArmor profile type to {quoted(values)}"
    return Violation(plural("forbidden AppArmor profile", values), detail)


def _added(container: Object) -> list[str]:
    return (security(container).get("capabilities") or {}).get("add") or []


def default_capabilities(pod: PodView) -> Violation | None:
    names = pod.names(lambda each: not _DEFAULT_CAPABILITIES.issuperset(_added(each)))
    if not names:
        return None
    added = {name for container in pod.containers for name in _added(container)}
    return Violation(
        "non-default capabilities",
        f"{containers(names)} must not include {quoted(sorted(added - _DEFAULT_CAPABILITIES))}"
        " in securityContext.capabilities.add",
    )


def host_namespaces(pod: PodView) -> Violation | None:
    shared = [
        f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(field)
    ]
    return Violation("host namespaces", ", ".join(shared)) if shared else None


def host_paths(pod: PodView) -> Violation | None:
    volumes = pod.spec.get("volumes") or ()
    names = [volume["name"] for volume in volumes if volume.get("hostPath") is not None]
    if not names:
        return None
    return Violation("hostPath volumes", f"{plural('volume', names)} {quoted(names)}")


def _host_ports(container: Object) -> list[str]:
    ports = container.get("ports") or ()
    return [str(port["hostPort"]) for port in ports if port.get("hostPort")]


def host_ports(pod: PodView) -> Violation | None:
    names = pod.names(lambda container: bool(_host_ports(container)))
    if not names:
        return None
    ports = sorted({port for container in pod.containers for port in _host_ports(container)})
    verb = "uses" if len(names) == 1 else "use"
    detail = f"{containers(names)} {verb} {plural('hostPort', ports)} {', '.join(ports)}"
    return Violation("hostPort", detail)


def _hosts(container: Object) -> set[str]:
    """The hosts that probes and hooks of a container call."""
    hooks = container.get("lifecycle") or {}
    handlers = [container.get(f"{each}Probe") for each in ("liveness", "readiness", "startup")]
    handlers += [hooks.get("postStart"), hooks.get("preStop")]
    actions = [
        handler.get(action) or {}
        for handler in handlers
        if handler
        for action in ("httpGet", "tcpSocket")
    ]
    return {action["host"] for action in actions if action.get("host")}


def probe_hosts(pod: PodView) -> Violation | None:
    names = sorted(pod.names(lambda container: bool(_hosts(container))))
    if not names:
        return None
    hosts = sorted({host for container in pod.containers for host in _hosts(container)})
    verb, what = "uses" if len(names) == 1 else "use", "probe or lifecycle host"
    return Violation(what, f"{containers(names)} {verb} {plural(what, hosts)} {quoted(hosts)}")


def privileged(pod: PodView) -> Violation | None:
    names = pod.names(lambda container: security(container).get("privileged") is True)
    if not names:
        return None
    return Violation(
        "privileged", f"{containers(names)} must not set securityContext.privileged=true"
    )


def proc_mount(pod: PodView) -> Violation | None:
    def mount(container: Object) -> str:
        return security(container).get("procMount") or "Default"

    names = pod.names(lambda container: mount(container) != "Default")
    if not names:
        return None
    kinds = sorted({mount(container) for container in pod.containers} - {"Default"})
    detail = f"{containers(names)} must not set securityContext.procMount to {quoted(kinds)}"
    return Violation("procMount", detail)


def selinux(*types: str) -> Callable[[PodView], Violation | None]:
    """The check that allows no other types than these."""
    allowed = ("", *types)

    def check(pod: PodView) -> Violation | None:
        options = list(pod.settings("seLinuxOptions"))
        bad = [
            (setter, each)
            for setter, each in options
            if (each.get("type") or "") not in allowed or each.get("user") or each.get("role")
        ]
        if not bad:
            return None
        forbidden = sorted({each.get("type") or "" for _, each in bad} - set(allowed))
        data = [f"{plural('type', forbidden)} {quoted(forbidden)}"] if forbidden else []
        data += [
            f"{field} may not be set"
            for field in ("user", "role")
            if any(each.get(field) for _, each in bad)
        ]
        subject = f"{setters(setter for setter, _ in bad)} set forbidden"
        return Violation(
            "seLinuxOptions", f"{subject} securityContext.seLinuxOptions: {'; '.join(data)}"
        )

    return check


def seccomp_annotations(pod: PodView) -> Violation | None:
    keys = [_SECCOMP_POD, *(f"{_SECCOMP_CONTAINER}{each['name']}" for each in pod.containers)]
    forbidden = sorted(
        {
            f"{key}={json.dumps(value)}"
            for key in keys
            if (value := pod.annotations.get(key)) is not None
            and value not in ("runtime/default", "docker/default")
            and not value.startswith("localhost/")
        }
    )
    if not forbidden:
        return None
    detail = f"forbidden {plural('annotation', forbidden)} {', '.join(forbidden)}"
    return Violation("seccompProfile", detail)


def seccomp_allowed(pod: PodView) -> Violation | None:
    bad = [
        (setter, profile.get("type", ""))
        for setter, profile in pod.settings("seccompProfile")
        if profile.get("type") not in _PROFILES
    ]
    if not bad:
        return None
    values = quoted(sorted({value for _, value in bad}))
    subject = f"{setters(setter for setter, _ in bad)} must not set"
    return Violation("seccompProfile", f"{subject} securityContext.seccompProfile.type to {values}")


def seccomp_required(pod: PodView) -> Violation | None:
    if violation := seccomp_allowed(pod):
        return violation
    names = pod.names(lambda container: security(container).get("seccompProfile") is None)
    if not names or pod.security.get("seccompProfile") is not None:
        return None
    return Violation(
        "seccompProfile",
        f"pod or {containers(names)} must set securityContext.seccompProfile.type to"
        ' "RuntimeDefault" or "Localhost"',
    )


def sysctls(*allowed: str) -> Callable[[PodView], Violation | None]:
    """The check that allows no other sysctls than these."""

    def check(pod: PodView) -> Violation | None:
        settings = pod.security.get("sysctls") or ()
        forbidden = [each["name"] for each in settings if each["name"] not in allowed]
        return Violation("forbidden sysctls", ", ".join(forbidden)) if forbidden else None

    return check


def host_process(pod: PodView) -> Violation | None:
    bad = [setter for setter, each in pod.settings("windowsOptions") if each.get("hostProcess")]
    if not bad:
        return None
    option = "securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", f"{setters(bad)} must not set {option}")


def no_escalation(pod: PodView) -> Violation | None:
    names = pod.names(
        lambda container: security(container).get("allowPrivilegeEscalation") is not False
    )
    if not names:
        return None
    field = "securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", f"{containers(names)} must set {field}")


def dropped_capabilities(pod: PodView) -> Violation | None:
    def keeps(container: Object) -> bool:
        return "ALL" not in ((security(container).get("capabilities") or {}).get("drop") or ())

    details = []
    if names := pod.names(keeps):
        details.append(f'{containers(names)} must set securityContext.capabilities.drop=["ALL"]')
    if names := pod.names(lambda container: not {"NET_BIND_SERVICE"}.issuperset(_added(container))):
        added = {name for container in pod.containers for name in _added(container)}
        forbidden = quoted(sorted(added - {"NET_BIND_SERVICE"}))
        where = "securityContext.capabilities.add"
        details.append(f"{containers(names)} must not include {forbidden} in {where}")
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def volume_types(pod: PodView) -> Violation | None:
    bad: dict[str, str] = {}
    for volume in pod.spec.get("volumes") or ():
        sources = [key for key, value in volume.items() if key != "name" and value is not None]
        if not _ALLOWED_VOLUMES.intersection(sources):
            bad[volume["name"]] = sources[0] if sources else "unknown"
    if not bad:
        return None
    types = sorted(set(bad.values()))
    verb, what = "uses" if len(bad) == 1 else "use", plural("restricted volume type", types)
    return Violation(
        "restricted volume types",
        f"{plural('volume', bad)} {quoted(bad)} {verb} {what} {quoted(types)}",
    )


def not_root(pod: PodView) -> Violation | None:
    reason, field = "runAsNonRoot != true", "securityContext.runAsNonRoot"
    if bad := [setter for setter, value in pod.settings("runAsNonRoot") if value is False]:
        return Violation(reason, f"{setters(bad)} must not set {field}=false")
    names = pod.names(lambda container: security(container).get("runAsNonRoot") is None)
    if not names or pod.security.get("runAsNonRoot"):
        return None
    return Violation(reason, f"pod or {containers(names)} must set {field}=true")


def not_user_zero(pod: PodView) -> Violation | None:
    bad = [setter for setter, value in pod.settings("runAsUser") if value == 0]
    return Violation("runAsUser=0", f"{setters(bad)} must not set runAsUser=0") if bad else None

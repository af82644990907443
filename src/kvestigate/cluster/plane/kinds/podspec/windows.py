"""What pods of Windows and of Linux nodes may say, and which of the two. Pure."""

from __future__ import annotations

import re
from typing import Any

from kvestigate.cluster.plane.kinds.checks import Causes, subdomain
from kvestigate.kube import causes

Object = dict[str, Any]

_SPEC_KIB, _DOMAIN_MAX, _USER_MAX = 64, 256, 104
_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_is_dns_domain = re.compile(rf"{_LABEL}(?:\.{_LABEL})*").fullmatch
_is_netbios_domain = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}').fullmatch
_has_control = re.compile(r"[\x00-\x1f\x7f]").search
_has_barred = re.compile(r'["/\\:;|=,+*?<>@\[\]]').search

_LINUX_OF_POD = (
    ("securityContext", "appArmorProfile"),
    ("securityContext", "seLinuxOptions"),
    ("", "hostUsers"),
    ("", "hostPID"),
    ("", "hostIPC"),
    ("securityContext", "seccompProfile"),
    ("securityContext", "fsGroup"),
    ("securityContext", "fsGroupChangePolicy"),
    ("securityContext", "sysctls"),
    ("", "shareProcessNamespace"),
    ("securityContext", "runAsUser"),
    ("securityContext", "runAsGroup"),
    ("securityContext", "supplementalGroups"),
    ("securityContext", "supplementalGroupsPolicy"),
    ("securityContext", "seLinuxChangePolicy"),
)
_LINUX_OF_CONTAINER = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def validate_options(path: str, options: Object) -> Causes:
    """The `windowsOptions` of a security context."""
    if "gmsaCredentialSpecName" in options:
        yield from subdomain(f"{path}.gmsaCredentialSpecName", options["gmsaCredentialSpecName"])
    told = options.get("gmsaCredentialSpec")
    if told == "":
        why = "gmsaCredentialSpec cannot be an empty string"
        yield causes.invalid(f"{path}.gmsaCredentialSpec", told, why)
    elif told is not None and len(told.encode()) > _SPEC_KIB * 1024:
        why = f"gmsaCredentialSpec size must be under {_SPEC_KIB} KiB"
        yield causes.invalid(f"{path}.gmsaCredentialSpec", told, why)
    if "runAsUserName" in options:
        name = options["runAsUserName"]
        for why in _user_problems(name):
            yield causes.invalid(f"{path}.runAsUserName", name, f"runAsUserName{why}")


def _user_problems(name: str) -> list[str]:
    if not name:
        return [" cannot be an empty string"]
    if _has_control(name):
        return [" cannot contain control characters"]
    *domains, user = name.split("\\")
    if len(domains) > 1:
        return [" cannot contain more than one backslash"]
    found = [why for domain in domains for why in _domain_problems(domain)]
    if not user:
        found.append("'s User cannot be empty")
    elif len(user.encode()) > _USER_MAX:
        found.append(f"'s User length must not be longer than {_USER_MAX} characters")
    if user and not user.strip(". "):
        found.append("'s User cannot contain only periods or spaces")
    if _has_barred(user):
        found.append("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return found


def _domain_problems(domain: str) -> list[str]:
    found = []
    if len(domain.encode()) >= _DOMAIN_MAX:
        found.append(f"'s Domain length must be under {_DOMAIN_MAX} characters")
    if not _is_netbios_domain(domain) and not _is_dns_domain(domain):
        found.append("'s Domain doesn't match the NetBios nor the DNS format")
    return found


def validate_host_processes(
    path: str, spec: Object, containers: list[tuple[str, Object]]
) -> Causes:
    """Either all containers are processes of the host, or none is."""
    shared = _host_process(spec["securityContext"])
    own = [(at, _host_process(each.get("securityContext") or {})) for at, each in containers]
    if shared is None and all(told is None for _, told in own):
        return
    if shared is not None:
        why = f"pod hostProcess value must be identical if both are specified, was {_go(shared)}"
        for at, told in own:
            if told is not None and told != shared:
                place = f"{at}.securityContext.windowsOptions.hostProcess"
                yield causes.invalid(place, told, why)
    count = sum(bool(shared if told is None else told) for _, told in own)
    if not count:
        return
    if count != len(own):
        why = (
            "If pod contains any hostProcess containers then all containers must be HostProcess "
            "containers"
        )
        yield causes.invalid(path, "", why)
    if not spec.get("hostNetwork"):
        why = "hostNetwork must be true if pod contains any hostProcess containers"
        yield causes.invalid(f"{path}.hostNetwork", False, why)


def _host_process(context: Object) -> bool | None:
    told: bool | None = (context.get("windowsOptions") or {}).get("hostProcess")
    return told


def _go(value: bool) -> str:
    return "true" if value else "false"


def validate_system(path: str, spec: Object, containers: list[tuple[str, Object]]) -> Causes:
    """The `os` that a spec names, and what it says that is of no use there."""
    name = spec["os"]["name"]
    if not name:
        yield causes.required(f"{path}.os.name")
    elif name == "linux":
        yield from _for_linux(path, spec, containers)
    elif name == "windows":
        yield from _for_windows(path, spec, containers)
    else:
        yield causes.unsupported(f"{path}.os", name, ["linux", "windows"])


def _for_linux(path: str, spec: Object, containers: list[tuple[str, Object]]) -> Causes:
    for at, each in ((path, spec), *containers):
        if "windowsOptions" in (each.get("securityContext") or {}):
            why = "windows options cannot be set for a linux pod"
            yield causes.forbidden(f"{at}.securityContext.windowsOptions", why)


def _for_windows(path: str, spec: Object, containers: list[tuple[str, Object]]) -> Causes:
    why = "cannot be set for a windows pod"
    for part, field in _LINUX_OF_POD:
        if field in (spec[part] if part else spec):
            yield causes.forbidden(".".join(filter(None, (path, part, field))), why)
    for at, container in containers:
        context = container.get("securityContext") or {}
        for field in _LINUX_OF_CONTAINER:
            if field in context:
                yield causes.forbidden(f"{at}.securityContext.{field}", why)

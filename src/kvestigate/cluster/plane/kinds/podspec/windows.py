"""Whether a pod fits the operating system that it names, and host processes. Pure.

Of the options for Windows themselves nothing is checked: no node here runs them.
"""

from __future__ import annotations

from typing import Any

from kvestigate.kube import causes
from kvestigate.kube.causes import Causes

Object = dict[str, Any]

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


def validate_host_processes(
    path: str, spec: Object, containers: list[tuple[str, Object]]
) -> Causes:
    """Refuse pods in which only some containers are host processes."""
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
    """Refuse settings that the operating system in `os` does not have."""
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

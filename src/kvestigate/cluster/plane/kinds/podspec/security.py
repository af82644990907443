"""Security contexts of pods and containers. Pure."""

from __future__ import annotations

import re
from typing import Any

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.podspec import paths
from kvestigate.kube import causes
from kvestigate.kube.causes import Causes

Object = dict[str, Any]

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"^({_SEGMENT}[\./])*{_SEGMENT}$"
_matches_sysctl = re.compile(_SYSCTL).match
_SYSCTL_MAX = 253
_PROFILE_MAX = 4095


def validate_pod_security(path: str, context: Object, spec: Object) -> Causes:
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield causes.invalid(f"{path}.shareProcessNamespace", True, why)
    yield from checks.fields(path, context, _POD_RULES)
    if "sysctls" in context:
        yield from _sysctls(f"{path}.sysctls", context["sysctls"], spec)


def validate_container_security(path: str, context: Object, *, host_users: bool) -> Causes:
    if host_users and context.get("procMount") == "Unmasked":
        why = "`hostUsers` must be false to use `Unmasked`"
        yield causes.invalid(f"{path}.procMount", "Unmasked", why)
    yield from checks.fields(path, context, _CONTAINER_RULES)
    if context.get("allowPrivilegeEscalation") is False:
        why = "cannot set `allowPrivilegeEscalation` to false and"
        if context.get("privileged"):
            yield causes.invalid(path, context, f"{why} `privileged` to true")
        if "CAP_SYS_ADMIN" in (context.get("capabilities") or {}).get("add", ()):
            yield causes.invalid(path, context, f"{why} `capabilities.Add` CAP_SYS_ADMIN")


def _sysctls(path: str, sysctls: list[Object], spec: Object) -> Causes:
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        at, name = f"{path}[{index}].name", sysctl.get("name", "")
        if not name:
            yield causes.required(at)
        elif len(name) > _SYSCTL_MAX or not _matches_sysctl(name):
            why = f"must have at most {_SYSCTL_MAX} characters and match regex {_SYSCTL}"
            yield causes.invalid(at, name, why)
        elif name in seen:
            yield causes.duplicate(at, name)
        if spec.get("hostNetwork") and name.replace("/", ".").startswith("net."):
            yield causes.invalid(at, name, "may not be specified when 'hostNetwork' is true")
        elif spec.get("hostIPC") and _of_ipc(name.replace("/", ".")):
            yield causes.invalid(at, name, "may not be specified when 'hostIPC' is true")
        seen.add(name)


def _of_ipc(name: str) -> bool:
    return name == "kernel.sem" or name.startswith(("kernel.shm", "kernel.msg", "fs.mqueue."))


def _seccomp(path: str, profile: Object) -> Causes:
    type_, local, at = profile["type"], profile.get("localhostProfile"), f"{path}.localhostProfile"
    if not type_:
        yield causes.required(f"{path}.type", "type is required when seccompProfile is set")
    else:
        yield from checks.choice(f"{path}.type", type_, _PROFILES)
    if type_ == "Localhost":
        if local is None:
            yield causes.required(at, "must be set when seccomp type is Localhost")
        else:
            yield from paths.descending(at, local)
    elif local is not None:
        yield causes.invalid(at, profile, "can only be set when seccomp type is Localhost")


def _app_armor(path: str, profile: Object) -> Causes:
    type_, local, at = profile["type"], profile.get("localhostProfile"), f"{path}.localhostProfile"
    if type_ == "Localhost":
        if not local:
            yield causes.required(at, "must be set when AppArmor type is Localhost")
        elif local != local.strip():
            yield causes.invalid(at, local, "must not be padded with whitespace")
        if local and len(local) > _PROFILE_MAX:
            yield causes.too_long(at, _PROFILE_MAX)
    elif not type_:
        yield causes.required(f"{path}.type", "type is required when appArmorProfile is set")
    elif type_ not in _PROFILES:
        yield causes.unsupported(f"{path}.type", type_, _PROFILES)
    elif local is not None:
        yield causes.invalid(at, local, "can only be set when AppArmor type is Localhost")


_id = checks.within(0, checks.INT32_MAX)

_CONTAINER_RULES: dict[str, checks.Rule] = {
    "runAsUser": _id,
    "runAsGroup": _id,
    "procMount": checks.choice_of("Default", "Unmasked"),
    "seccompProfile": _seccomp,
    "appArmorProfile": _app_armor,
}
_POD_RULES: dict[str, checks.Rule] = {
    "fsGroup": _id,
    "runAsUser": _id,
    "runAsGroup": _id,
    "supplementalGroups": checks.items(_id),
    "fsGroupChangePolicy": checks.choice_of("Always", "OnRootMismatch"),
    "seccompProfile": _seccomp,
    "appArmorProfile": _app_armor,
    "supplementalGroupsPolicy": checks.choice_of("Merge", "Strict"),
    "seLinuxChangePolicy": checks.choice_of("Recursive"),
}

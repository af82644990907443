"""Security contexts of pods and containers. Pure."""

from __future__ import annotations

import re
from typing import Any

from kvestigate.cluster.plane.kinds.checks import INT32_MAX, between
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
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from _id(f"{path}.{name}", context.get(name))
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        yield from _id(f"{path}.supplementalGroups[{index}]", group)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield causes.invalid(f"{path}.shareProcessNamespace", True, why)
    if "sysctls" in context:
        yield from _sysctls(f"{path}.sysctls", context["sysctls"], spec)
    yield from _choice(path, context, "fsGroupChangePolicy", ("Always", "OnRootMismatch"))
    yield from _seccomp(path, context)
    yield from _app_armor(path, context)
    yield from _choice(path, context, "supplementalGroupsPolicy", ("Merge", "Strict"))
    yield from _choice(path, context, "seLinuxChangePolicy", ("Recursive",))


def validate_container_security(path: str, context: Object, *, host_users: bool) -> Causes:
    yield from _id(f"{path}.runAsUser", context.get("runAsUser"))
    yield from _id(f"{path}.runAsGroup", context.get("runAsGroup"))
    if "procMount" in context:
        yield from _choice(path, context, "procMount", ("Default", "Unmasked"))
        if host_users and context["procMount"] == "Unmasked":
            why = "`hostUsers` must be false to use `Unmasked`"
            yield causes.invalid(f"{path}.procMount", "Unmasked", why)
    yield from _seccomp(path, context)
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield causes.invalid(path, context, why)
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            why = (
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
                "CAP_SYS_ADMIN"
            )
            yield causes.invalid(path, context, why)
    yield from _app_armor(path, context)


def _id(path: str, value: int | None) -> Causes:
    if value is not None and not 0 <= value <= INT32_MAX:
        yield causes.invalid(path, value, between(0, INT32_MAX))


def _choice(path: str, context: Object, name: str, allowed: tuple[str, ...]) -> Causes:
    if name in context and context[name] not in allowed:
        yield causes.unsupported(f"{path}.{name}", context[name], allowed)


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


def _seccomp(path: str, context: Object) -> Causes:
    profile = context.get("seccompProfile")
    if profile is None:
        return
    at, type_, local = f"{path}.seccompProfile", profile["type"], profile.get("localhostProfile")
    if not type_:
        yield causes.required(f"{at}.type", "type is required when seccompProfile is set")
    elif type_ not in _PROFILES:
        yield causes.unsupported(f"{at}.type", type_, _PROFILES)
    if type_ == "Localhost":
        if local is None:
            why = "must be set when seccomp type is Localhost"
            yield causes.required(f"{at}.localhostProfile", why)
        else:
            yield from paths.descending(f"{at}.localhostProfile", local)
    elif local is not None:
        why = "can only be set when seccomp type is Localhost"
        yield causes.invalid(f"{at}.localhostProfile", profile, why)


def _app_armor(path: str, context: Object) -> Causes:
    profile = context.get("appArmorProfile")
    if profile is None:
        return
    at, type_, local = f"{path}.appArmorProfile", profile["type"], profile.get("localhostProfile")
    place = f"{at}.localhostProfile"
    if type_ == "Localhost":
        if not local:
            yield causes.required(place, "must be set when AppArmor type is Localhost")
        elif local != local.strip():
            yield causes.invalid(place, local, "must not be padded with whitespace")
        if local and len(local) > _PROFILE_MAX:
            yield causes.too_long(place, _PROFILE_MAX)
    elif not type_:
        yield causes.required(f"{at}.type", "type is required when appArmorProfile is set")
    elif type_ not in _PROFILES:
        yield causes.unsupported(f"{at}.type", type_, _PROFILES)
    elif local is not None:
        yield causes.invalid(place, local, "can only be set when AppArmor type is Localhost")

"""The options of a request, refused the way kube-apiserver refuses them. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.kube import causes
from kvestigate.kube.causes import Cause

META = "meta.k8s.io"

_MANAGER_LIMIT = 128
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_WRITES = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}

EXACT, NOT_OLDER = "Exact", "NotOlderThan"
_MATCH = "resourceVersionMatch"


def check_write(info: RequestInfo, *, applies: bool = False) -> None:
    """Of a create, update or patch; `applies` when the patch is a server-side apply."""
    params = info.params
    if not params and not applies:
        return
    found: list[Cause] = []
    manager, force = params.get("fieldManager", ""), info.flag("force")
    if info.verb == "patch" and force and not applies:
        found.append(causes.forbidden("force", "may not be specified for non-apply patch"))
    if applies and not manager:
        found.append(causes.required("fieldManager", "is required for apply patch"))
    found += _check_manager(manager)
    if "dryRun" in params:
        found += check_dry_run([params["dryRun"]])
    validation = params.get("fieldValidation", "")
    if validation not in _VALIDATIONS:
        found.append(causes.unsupported("fieldValidation", validation, _VALIDATIONS))
    if found:
        raise causes.reject(_WRITES[info.verb], META, "", found)


def check_dry_run(values: list[str]) -> list[Cause]:
    if not values or values == ["All"]:
        return []
    return [causes.unsupported("dryRun", values, ["All"])]


def check_list(info: RequestInfo) -> None:
    params = info.params
    match, version = params.get(_MATCH, ""), params.get("resourceVersion", "")
    found: list[Cause] = []
    if match:
        if not version:
            found.append(_forbidden("is forbidden unless resourceVersion is provided"))
        if params.get("continue"):
            found.append(_forbidden("is forbidden when continue is provided"))
        if match not in (EXACT, NOT_OLDER):
            found.append(causes.unsupported(_MATCH, match, [EXACT, NOT_OLDER, ""]))
        if match == EXACT and version == "0":
            found.append(_forbidden('"exact" is forbidden for resourceVersion "0"'))
    if "sendInitialEvents" in params:
        told = "sendInitialEvents is forbidden for list"
        found.append(causes.forbidden("sendInitialEvents", told))
    if found:
        raise causes.reject("ListOptions", META, "", found)


def check_watch(info: RequestInfo) -> None:
    params = info.params
    match, initial = params.get(_MATCH, ""), "sendInitialEvents" in params
    found: list[Cause] = []
    if initial and match != NOT_OLDER:
        told = f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER}"
        found.append(causes.forbidden(_MATCH, told))
    if match:
        if not initial:
            found.append(_forbidden("is forbidden for watch unless sendInitialEvents is provided"))
        if match != NOT_OLDER:
            found.append(causes.unsupported(_MATCH, match, [NOT_OLDER]))
        if params.get("continue"):
            found.append(_forbidden("is forbidden when continue is provided"))
    if found:
        raise causes.reject("ListOptions", META, "", found)


def _forbidden(why: str) -> Cause:
    return causes.forbidden(_MATCH, f"{_MATCH} {why}")


def _check_manager(manager: str) -> list[Cause]:
    found: list[Cause] = []
    if len(manager.encode()) > _MANAGER_LIMIT:
        found.append(causes.too_long("fieldManager", _MANAGER_LIMIT))
    for position, char in enumerate(manager):
        if not char.isprintable():
            told = f"invalid character U+{ord(char):04X} (at position {position})"
            found.append(causes.invalid("fieldManager", manager, told))
    return found

"""ResourceQuotas: how much a namespace may hold."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks, resource_names
from kvestigate.cluster.plane.kinds.podspec.defaults import round_amounts
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, quantities
from kvestigate.kube.causes import Causes

_PODS = frozenset(("pods",))
_COMPUTE = _PODS | {"cpu", "memory"}
_COMPUTE |= {f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "memory")}
_APPLIES = {
    "Terminating": _COMPUTE,
    "NotTerminating": _COMPUTE,
    "NotBestEffort": _COMPUTE,
    "PriorityClass": _COMPUTE,
    "CrossNamespacePodAffinity": _COMPUTE,
    "BestEffort": _PODS,
    "VolumeAttributesClass": frozenset(("persistentvolumeclaims", "requests.storage")),
}
_OPPOSITES = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_EXISTS_ONLY = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
    "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
    "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_VALUED = ("PriorityClass", "VolumeAttributesClass")


class ResourceQuotaKind(Kind):
    returns_deleted = True
    warns_on_update = False
    status_carries_metadata = True

    def default(self, obj: Object) -> None:
        for amounts in (obj["spec"].get("hard"), *_status_amounts(obj)):
            round_amounts(amounts or {})

    def validate(self, obj: Object, scene: Scene) -> Causes:
        spec = obj["spec"]
        hard = spec.get("hard") or {}
        yield from _amounts("spec.hard", hard)
        scopes = spec.get("scopes") or []
        for scope in scopes:
            if scope not in _APPLIES:
                yield causes.invalid("spec.scopes", scopes, "unsupported scope")
            yield from _unfit("spec.scopes", scopes, scope, hard)
        if any(pair <= set(scopes) for pair in _OPPOSITES):
            yield causes.invalid("spec.scopes", scopes, "conflicting scopes")
        if "scopeSelector" in spec:
            yield from _selector("spec.scopeSelector.matchExpressions", spec, hard)

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        scopes, before = new["spec"].get("scopes"), old["spec"].get("scopes")
        if set(scopes or ()) == set(before or ()):
            return []
        return [causes.invalid("spec.scopes", scopes, checks.IMMUTABLE)]

    def validate_status(self, new: Object, old: Object, scene: Scene) -> Causes:
        status = new.get("status") or {}
        return checks.fields("status", status, {"hard": _amounts, "used": _amounts})

    def warnings(self, obj: Object) -> list[str]:
        hard = obj["spec"].get("hard") or {}
        warnings = []
        for name in ("cpu", "memory", "ephemeral-storage"):
            request = f"requests.{name}"
            if request not in hard and name != "ephemeral-storage":
                request = name
            limit = f"limits.{name}"
            if request not in hard or limit not in hard:
                continue
            if quantities.parse(hard[request]) > quantities.parse(hard[limit]):
                advice = f"{request} ({hard[request]}) should be less than {limit} ({hard[limit]})"
                warnings.append(f"ResourceQuota {advice}")
        return warnings


def _status_amounts(obj: Object) -> list[Object]:
    status = obj.get("status") or {}
    return [status.get("hard") or {}, status.get("used") or {}]


def _amounts(path: str, amounts: dict[str, str]) -> Causes:
    for name, amount in amounts.items():
        yield from resource_names.validate_quota_name(f"{path}[{name}]", name)
        yield from resource_names.validate_amount(f"{path}[{name}]", name, amount)


def _unfit(path: str, shown: object, scope: str, hard: dict[str, str]) -> Causes:
    fitting = _APPLIES.get(scope)
    for name in sorted(hard):
        if fitting is not None and name not in fitting and resource_names.is_quota(name):
            yield causes.invalid(path, shown, "unsupported scope applied to resource")


def _selector(path: str, spec: Object, hard: dict[str, str]) -> Causes:
    selector = spec["scopeSelector"]
    seen = set()
    for requirement in selector.get("matchExpressions") or ():
        scope, operator = requirement["scopeName"], requirement["operator"]
        values = requirement.get("values") or []
        if scope not in _APPLIES:
            yield causes.invalid(f"{path}.scopeName", scope, "unsupported scope")
        yield from _unfit(path, selector, scope, hard)
        if scope in _APPLIES and scope not in _VALUED and operator != "Exists":
            yield causes.invalid(f"{path}.operator", operator, _EXISTS_ONLY)
        if operator in ("In", "NotIn"):
            if not values:
                why = "must be at least one value when `operator` is 'In' or 'NotIn'"
                yield causes.required(f"{path}.values", f"{why} for scope selector")
        elif operator not in ("Exists", "DoesNotExist"):
            yield causes.invalid(f"{path}.operator", operator, checks.NO_OPERATOR)
        elif values:
            why = "must be no value when `operator` is 'Exist' or 'DoesNotExist'"
            yield causes.invalid(f"{path}.values", values, f"{why} for scope selector")
        seen.add(scope)
    if any(pair <= seen for pair in _OPPOSITES):
        yield causes.invalid(path, spec.get("scopes"), "conflicting scopes")

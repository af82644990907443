"""LimitRanges: what a namespace gives and allows each pod, container and claim."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks, resource_names
from kvestigate.cluster.plane.kinds.podspec.defaults import round_amounts
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names, quantities
from kvestigate.kube.causes import Causes
from kvestigate.kube.quantities import Quantity

_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


class LimitRangeKind(Kind):
    creates_on_update = True

    def default(self, obj: Object) -> None:
        for limit in obj["spec"].get("limits") or ():
            if limit["type"] == "Container":
                _default(limit)
            for field in _FIELDS:
                round_amounts(limit.get(field) or {})

    def on_create(self, obj: Object, scene: Scene) -> None:
        meta = obj["metadata"]
        if not meta.get("name"):
            meta["name"] = meta["uid"]  # alone among kinds, these need not be named

    def validate(self, obj: Object, scene: Scene) -> Causes:
        limits = obj["spec"].get("limits") or []
        seen: set[str] = set()
        for index, limit in enumerate(limits):
            at, type_ = f"spec.limits[{index}]", limit["type"]
            yield from _type(f"{at}.type", type_)
            if type_ in seen:
                yield causes.duplicate(f"{at}.type", type_)
            seen.add(type_)
            yield from _names(at, limit)
            for name in dict.fromkeys(name for field in _FIELDS for name in limit.get(field) or ()):
                yield from _contradictions(at, limit, name)


def _default(limit: Object) -> None:
    most, least = limit.get("max") or {}, limit.get("min") or {}
    default = {**most, **(limit.get("default") or {})}
    request = {**least, **default, **(limit.get("defaultRequest") or {})}
    if default:
        limit["default"] = default
    if request:
        limit["defaultRequest"] = request


def _type(path: str, type_: str) -> Causes:
    problems = names.qualified_name_problems(type_)
    yield from checks.each(path, type_, problems)
    if not problems and "/" not in type_ and type_ not in _TYPES:
        why = "must be a standard limit type or fully qualified"
        yield causes.invalid(path, type_, why)


def _names(path: str, limit: Object) -> Causes:
    type_ = limit["type"]
    check = resource_names.validate_name
    if type_ in ("Pod", "Container"):
        check = resource_names.validate_container_name
    for field in _FIELDS:
        if type_ == "Pod" and field in ("default", "defaultRequest"):
            if limit.get(field):
                why = "may not be specified when `type` is 'Pod'"
                yield causes.forbidden(f"{path}.{field}", why)
            continue
        if field == "maxLimitRequestRatio" and type_ == "PersistentVolumeClaim":
            yield from _storage(path, limit)
        for name in limit.get(field) or ():
            yield from check(f"{path}.{field}[{name}]", name)


def _storage(path: str, limit: Object) -> Causes:
    if "storage" not in {**(limit.get("min") or {}), **(limit.get("max") or {})}:
        why = "either minimum or maximum storage value is required, but neither was provided"
        yield causes.required(f"{path}.limits", why)


_ORDERED = (
    # The lower field, the higher one, the one that is reported, and how they are called.
    ("min", "max", "min", "min value", "max value"),
    ("min", "defaultRequest", "defaultRequest", "min value", "default request value"),
    ("defaultRequest", "max", "defaultRequest", "default request value", "max value"),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "default request value",
        "default limit value",
    ),
    ("min", "default", "default", "min value", "default value"),
    ("default", "max", "default", "default value", "max value"),
)


def _contradictions(path: str, limit: Object, name: str) -> Causes:
    """The bounds and defaults of one resource must not contradict each other."""
    ignored = ("default", "defaultRequest") if limit["type"] == "Pod" else ()
    fields = [field for field in _FIELDS if field not in ignored and name in limit.get(field, ())]
    texts = {field: limit[field][name] for field in fields}
    amounts = {field: quantities.parse(text) for field, text in texts.items()}
    for low, high, reported, low_name, high_name in _ORDERED:
        if low in texts and high in texts and amounts[low] > amounts[high]:
            why = f"{low_name} {texts[low]} is greater than {high_name} {texts[high]}"
            yield causes.invalid(f"{path}.{reported}[{name}]", texts[reported], why)
    if "maxLimitRequestRatio" in texts:
        yield from _ratio(f"{path}.maxLimitRequestRatio[{name}]", texts, amounts)
    both = "default" in texts and "defaultRequest" in texts
    if both and not resource_names.overcommits(name):
        default, request = texts["default"], texts["defaultRequest"]
        if amounts["default"] != amounts["defaultRequest"]:
            why = f"default value {default} must equal to defaultRequest value {request} in {name}"
            yield causes.invalid(f"{path}.defaultRequest[{name}]", request, why)


def _ratio(path: str, texts: dict[str, str], amounts: dict[str, Quantity]) -> Causes:
    text, ratio = texts["maxLimitRequestRatio"], amounts["maxLimitRequestRatio"]
    if ratio.millis < 1000:
        yield causes.invalid(path, text, f"ratio {text} is less than 1")
    if "max" in amounts and amounts.get("min"):
        most = amounts["max"].nanos / amounts["min"].nanos
        if ratio.millis / 1000 > most:
            yield causes.invalid(path, text, f"ratio {text} is greater than max/min = {most:f}")

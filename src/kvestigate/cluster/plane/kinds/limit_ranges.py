"""LimitRanges: what a namespace gives and allows each pod, container and claim."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.cluster.plane.kinds import checks, resource_names
from kvestigate.cluster.plane.kinds.podspec.defaults import round_amounts
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names, quantities
from kvestigate.kube.causes import Cause, Causes
from kvestigate.kube.quantities import Quantity

_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


class LimitRangeKind(Kind):
    judges_step = False
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
                yield from _Range(at, limit, name).problems()


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


class _Range:
    """The bounds and defaults of one resource, which must not contradict each other."""

    def __init__(self, path: str, limit: Object, name: str) -> None:
        self._path = path
        self._name = name
        self._text = {
            field: limit[field][name] for field in _FIELDS if name in (limit.get(field) or ())
        }
        if limit["type"] == "Pod":
            self._text.pop("default", None)
            self._text.pop("defaultRequest", None)

    def problems(self) -> Causes:
        least, most, default, request = "min", "max", "default", "defaultRequest"
        yield from self._above(least, most, least, "min value", "max value")
        yield from self._above(least, request, request, "min value", "default request value")
        yield from self._above(request, most, request, "default request value", "max value")
        yield from self._above(
            request, default, request, "default request value", "default limit value"
        )
        yield from self._above(least, default, default, "min value", "default value", shown=least)
        yield from self._above(default, most, default, "default value", "max value", shown=most)
        yield from self._ratio()
        if not resource_names.overcommits(self._name):
            yield from self._unequal()

    def _above(
        self, low: str, high: str, at: str, low_name: str, high_name: str, shown: str = ""
    ) -> Iterator[Cause]:
        if low not in self._text or high not in self._text:
            return
        if self._amount(low) > self._amount(high):
            why = f"{low_name} {self._text[low]} is greater than {high_name} {self._text[high]}"
            yield causes.invalid(self._at(at), self._text[shown or at], why)

    def _ratio(self) -> Causes:
        text = self._text.get("maxLimitRequestRatio")
        if text is None:
            return
        ratio, at = self._amount("maxLimitRequestRatio"), self._at("maxLimitRequestRatio")
        if ratio.millis < 1000:
            yield causes.invalid(at, text, f"ratio {text} is less than 1")
        if "min" in self._text and "max" in self._text and self._amount("min"):
            most = self._amount("max").nanos / self._amount("min").nanos
            if ratio.millis / 1000 > most:
                yield causes.invalid(at, text, f"ratio {text} is greater than max/min = {most:f}")

    def _unequal(self) -> Causes:
        default, request = self._text.get("default"), self._text.get("defaultRequest")
        if default is None or request is None:
            return
        if self._amount("default") != self._amount("defaultRequest"):
            why = f"default value {default} must equal to defaultRequest value {request}"
            yield causes.invalid(self._at("defaultRequest"), request, f"{why} in {self._name}")

    def _amount(self, field: str) -> Quantity:
        return quantities.parse(self._text[field])

    def _at(self, field: str) -> str:
        return f"{self._path}.{field}[{self._name}]"

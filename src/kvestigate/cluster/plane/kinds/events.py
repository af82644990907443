"""Events: kept as the core group has them, shown by `events.k8s.io` under newer names."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.view import View
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

_LIMITS = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}
_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def _involved(field: str) -> tuple[str, Callable[[Object], str]]:
    return f"involvedObject.{field}", lambda obj: obj["involvedObject"].get(field, "")


def _source(obj: Object) -> str:
    name: str = obj["source"].get("component") or obj.get("reportingComponent", "")
    return name


class EventKind(Kind):
    shares_on_update = True
    has_plain_finalizers = True
    creates_on_update = True
    selectable = (
        *(_involved(field) for field in _INVOLVED),
        ("reason", lambda obj: obj.get("reason", "")),
        ("reportingComponent", lambda obj: obj.get("reportingComponent", "")),
        ("source", _source),
        ("type", lambda obj: obj.get("type", "")),
    )

    def name_problems(self, name: str) -> list[str]:
        return names.path_segment_problems(name)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return _event(obj, "reportingComponent")


def _event(obj: Object, reporter: str) -> Causes:
    """`reporter`: what the version that is spoken calls the reporting controller."""
    namespace = obj["metadata"].get("namespace", "")
    about = obj["involvedObject"].get("namespace", "")
    if not obj.get("eventTime"):
        agree = about == namespace if about else namespace in ("", "default")
    else:
        agree = bool(about) or namespace in ("default", "kube-system")
    if not agree:
        why = "does not match event.namespace"
        yield causes.invalid("involvedObject.namespace", about, why)
    if obj.get("eventTime"):
        yield from _modern(obj, reporter)


def _modern(obj: Object, reporter: str) -> Causes:
    """Validate events that have an `eventTime`."""
    name = obj.get("reportingComponent", "")
    if not name:
        yield causes.required(reporter)
    yield from checks.label_key(reporter, name)
    for field, limit in _LIMITS.items():
        text = obj.get(field, "")
        if not text and field != "message":
            yield causes.required(field)
        if len(text.encode()) > limit:
            yield causes.invalid(field, "", f"can have at most {limit} characters")


def _strict(obj: Object) -> Causes:
    """Extra rules of events.k8s.io/v1: deprecated fields must be unset."""
    yield from _series(obj.get("series"))
    if not obj.get("eventTime"):
        yield causes.required("eventTime")
    type_ = obj.get("type", "")
    if type_ not in ("Normal", "Warning"):
        yield causes.invalid("type", "", f"has invalid value: {type_}")
    for field in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if obj.get(field):
            yield causes.invalid(field, "", "needs to be unset")


def _series(series: Object | None) -> Causes:
    if series is None:
        return
    if series.get("count", 0) < 2:
        yield causes.invalid("series.count", "", "should be at least 2")
    if not series.get("lastObservedTime"):
        yield causes.required("series.lastObservedTime")


_FIXED = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
)
"""What nobody may change in an event of events.k8s.io/v1."""


def _kept(new: Object, old: Object) -> Causes:
    if new.get("series") != old.get("series"):
        yield from _series(new.get("series"))
    yield from checks.immutable("", new, old, *_FIXED)


# events.k8s.io/v1 -> v1
_RENAMED = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_BACK = {old: new for new, old in _RENAMED.items()}
# Those that the core version always has; null or empty if nothing was said.
_ALWAYS: dict[str, object] = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}


class EventView(View):
    """`events.k8s.io/v1`"""

    renamed_fields: ClassVar[dict[str, str]] = {
        **{f"involvedObject.{field}": f"regarding.{field}" for field in _INVOLVED},
        "reportingComponent": "reportingController",
        # Not known to this version: no selector can ask for a field without a name.
        "source": "",
    }

    def to_stored(self, obj: Object) -> Object:
        renamed = {_RENAMED.get(field, field): value for field, value in obj.items()}
        for field, empty in _ALWAYS.items():
            if renamed.get(field) is None:
                renamed[field] = dict(empty) if isinstance(empty, dict) else empty
        resource = self.stored.resource
        return {**renamed, "kind": resource.kind, "apiVersion": resource.api_version}

    @property
    def judge(self) -> Kind:
        """This version itself, because its rules are stricter than those of the stored version."""
        return self

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return _event(obj, "reportingController")

    def validate_create(self, obj: Object, scene: Scene) -> Causes:
        return _strict(obj)

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        return _kept(new, old)

    def from_stored(self, obj: Object) -> Object:
        renamed = {_BACK.get(field, field): value for field, value in obj.items()}
        for field in ("reportingController", "reportingInstance"):
            if not renamed.get(field):
                renamed.pop(field, None)
        return {**renamed, "kind": "Event", "apiVersion": self.resource.api_version}

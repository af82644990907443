"""Checks an object against its built-in type and says what does not fit.

Two kinds of misfit, which kube-apiserver treats differently. A value of the wrong type is an
error always, and only the first one in the document is told. An unknown field is an error,
a warning or nothing, as the request's `fieldValidation` asks, and all of them are told. The
texts follow kube-apiserver's, since people search for them; where it would name a Go type
that no schema mentions (`v1.RestartPolicy`), the type underneath (`string`) is named.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from kvestigate.errors import InputError
from kvestigate.kube import pauses, quantities, strict
from kvestigate.kube.facts import Definition, Field, Type, definition

# kube-apiserver stops collecting there.
MAX_UNKNOWN = 100


class Problems(msgspec.Struct, frozen=True):
    """What does not fit; false if everything does."""

    mistyped: str = ""
    """`json: cannot unmarshal string into Go struct field ...`, of the first such value."""
    unknown: tuple[str, ...] = ()
    """The paths of unknown fields: `spec.containers[0].imagee`."""

    def __bool__(self) -> bool:
        return bool(self.mistyped or self.unknown)

    @property
    def warnings(self) -> tuple[str, ...]:
        """`unknown field "spec.foo"`, for `Warning` headers."""
        return tuple(f'unknown field "{path}"' for path in self.unknown)


FITS = Problems()


def problems(value: Any, of: Definition) -> Problems:
    """What in a decoded object does not fit its definition."""
    return FITS if strict.fits(value, of) else examine(value, of)


def examine(value: Any, of: Definition) -> Problems:
    """The same without the fast path, for objects that are known not to fit."""
    walk = _Walk()
    walk.value(value, Field(Type.DEFINED, of.name), _Place("", "", ""))
    return Problems(walk.mistyped, tuple(walk.unknown))


def misfit(value: Any, type_: Type) -> str:
    """Why a value that stands alone is no scalar of the type; empty if it is one."""
    found = next(_SCALAR_CHECKS[type_](value), None)
    if found is None:
        return ""
    return found or _unmarshal(value, Field(type_), _Place("", "", ""))


class _Place(msgspec.Struct, frozen=True, gc=False):
    """Where the walk is, in the three spellings that the texts use."""

    path: str
    """`spec.containers[0].ports`"""
    go_path: str
    """`spec.containers.ports`: Go's own, without positions."""
    struct: str
    """The type whose field this is: `Container`."""

    def field(self, of: Definition, name: str) -> _Place:
        struct = of.name.rsplit(".", 1)[1]
        embedded = _embedded(struct, name)
        return _Place(_joined(self.path, name), _joined(self.go_path, embedded + name), struct)

    def element(self, position: int) -> _Place:
        return _Place(f"{self.path}[{position}]", self.go_path, self.struct)

    def entry(self, key: str) -> _Place:
        return _Place(_joined(self.path, key), self.go_path, self.struct)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _embedded(struct: str, name: str) -> str:
    """The embedded Go struct that a field really belongs to: it shows in Go's paths."""
    if struct == "Volume" and name != "name":
        return "VolumeSource."
    if struct == "Probe" and name in ("exec", "grpc", "httpGet", "tcpSocket"):
        return "ProbeHandler."
    if struct == "EphemeralContainer" and name != "targetContainerName":
        return "EphemeralContainerCommon."
    if struct in _REFERENCES and name == "name":
        return "LocalObjectReference."
    if struct == "PersistentVolumeSpec" and name not in _OF_EVERY_VOLUME:
        return "PersistentVolumeSource."
    if struct == "IngressRule" and name == "http":
        return "IngressRuleValue."
    if struct in ("RuleWithOperations", "NamedRuleWithOperations"):
        return _rule(struct, name)
    if struct == "PersistentVolumeClaim" and name in ("apiVersion", "kind"):
        return "TypeMeta."
    return "DeviceConfiguration." if name == "opaque" else ""


def _rule(struct: str, name: str) -> str:
    """A rule is in a rule with operations, which may be in one with names."""
    outer = "RuleWithOperations." if struct == "NamedRuleWithOperations" else ""
    if name == "operations":
        return outer
    return "" if name == "resourceNames" else f"{outer}Rule."


_OF_EVERY_VOLUME = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)
_REFERENCES = frozenset(
    {
        "ConfigMapEnvSource",
        "ConfigMapKeySelector",
        "ConfigMapProjection",
        "ConfigMapVolumeSource",
        "SecretEnvSource",
        "SecretKeySelector",
        "SecretProjection",
    }
)


class _Walk:
    """One pass over an object, in document order."""

    def __init__(self) -> None:
        self.mistyped = ""
        self.unknown: list[str] = []

    def value(self, value: Any, field: Field, place: _Place) -> None:
        pauses.rest_if_due()
        if value is None:  # Go reads null as nothing said, for every type
            return
        if field.type is Type.DEFINED:
            self._defined(value, field, place)
        elif field.type is Type.LIST:
            self._list(value, field, place)
        elif field.type is Type.MAP:
            self._map(value, field, place)
        else:
            self._scalar(value, field.type, place)

    def _defined(self, value: Any, field: Field, place: _Place) -> None:
        of = definition(field.definition)
        if of.scalar is not None:
            self._scalar(value, of.scalar, place)
        elif not isinstance(value, dict):
            self._mistyped(value, field, place)
        else:
            for name, inner in value.items():
                known = of.fields.get(name)
                if known is not None:
                    self.value(inner, known, place.field(of, name))
                elif len(self.unknown) < MAX_UNKNOWN:
                    self.unknown.append(_joined(place.path, name))

    def _list(self, value: Any, field: Field, place: _Place) -> None:
        assert field.element is not None
        if not isinstance(value, list):
            self._mistyped(value, field, place)
            return
        for position, inner in enumerate(value):
            self.value(inner, field.element, place.element(position))

    def _map(self, value: Any, field: Field, place: _Place) -> None:
        assert field.element is not None
        if not isinstance(value, dict):
            self._mistyped(value, field, place)
            return
        for key, inner in value.items():
            self.value(inner, field.element, place.entry(key))

    def _scalar(self, value: Any, type_: Type, place: _Place) -> None:
        for complaint in _SCALAR_CHECKS[type_](value):
            self._tell(complaint or _unmarshal(value, Field(type_), place))

    def _mistyped(self, value: Any, field: Field, place: _Place) -> None:
        self._tell(_unmarshal(value, field, place))

    def _tell(self, text: str) -> None:
        self.mistyped = self.mistyped or text


# Each yields nothing if the value fits, "" if its JSON type is wrong, else what is wrong.
Complaints = Iterator[str]

_WRONG_TYPE = ""


def _check_string(value: Any) -> Complaints:
    if not isinstance(value, str):
        yield _WRONG_TYPE


def _check_boolean(value: Any) -> Complaints:
    if not isinstance(value, bool):
        yield _WRONG_TYPE


def _check_integer(bits: int) -> Callable[[Any], Complaints]:
    limit = 2 ** (bits - 1)

    def check(value: Any) -> Complaints:
        if type(value) is not int or not -limit <= value < limit:
            yield _WRONG_TYPE

    return check


_check_int32 = _check_integer(32)


def _check_number(value: Any) -> Complaints:
    if type(value) not in (int, float):
        yield _WRONG_TYPE


def _check_int_or_string(value: Any) -> Complaints:
    if not isinstance(value, str):
        yield from _check_int32(value)


def _check_bytes(value: Any) -> Complaints:
    if not isinstance(value, str):  # Go takes an array of numbers too, which nobody sends
        yield _WRONG_TYPE
        return
    text = re.sub(r"[\r\n]", "", value)
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        bad = re.search(r"[^A-Za-z0-9+/]", text)
        good = re.match(r"(?:[A-Za-z0-9+/]{4})*", text)
        at = bad.start() if bad and bad[0] != "=" else good.end() if good else 0
        yield f"illegal base64 data at input byte {at}"


_LAYOUT = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
_TIME = re.compile(
    r"\d{4}-(?P<month>\d\d)-\d\dT(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
    r"(?P<fraction>\.\d+)?(Z|[+-]\d\d:\d\d)",
    re.ASCII,
)
_LIMITS = {"month": (1, 12), "hour": (0, 23), "minute": (0, 59), "second": (0, 59)}


def _check_time(value: Any) -> Complaints:
    return _check_layout(value, _LAYOUT)


def _check_microtime(value: Any) -> Complaints:
    return _check_layout(value, _MICRO_LAYOUT)


def _check_layout(value: Any, layout: str) -> Complaints:
    if not isinstance(value, str):
        yield _WRONG_TYPE
        return
    match = _TIME.fullmatch(value)
    if match is None:
        yield f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"'
        return
    if layout is _MICRO_LAYOUT and len(match["fraction"] or "") != len(".000000"):
        rest = value[match.end("second") :]
        yield f'parsing time "{value}" as "{layout}": cannot parse "{rest}" as ".000000"'
        return
    try:
        datetime.fromisoformat(value)
    except ValueError:
        wrong = (
            part for part, (low, high) in _LIMITS.items() if not low <= int(match[part]) <= high
        )
        yield f'parsing time "{value}": {next(wrong, "day")} out of range'


_QUANTITY_FORM = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_QUANTITY = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]*)([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_QUANTITY_SUFFIX = re.compile(r"[numkMGTPE]?|[KMGTPE]i|[eE][-+]?[0-9]+", re.ASCII)


def _check_quantity(value: Any) -> Complaints:
    text = value.strip() if isinstance(value, str) else value
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if match and not _QUANTITY_SUFFIX.fullmatch(match[1]):
        yield "unable to parse quantity's suffix"
        return
    try:
        quantities.parse(text)
    except InputError:
        yield f"quantities must match the regular expression '{_QUANTITY_FORM}'"


def _check_nothing(value: Any) -> Complaints:
    return iter(())


_SCALAR_CHECKS: dict[Type, Callable[[Any], Complaints]] = {
    Type.STRING: _check_string,
    Type.BYTES: _check_bytes,
    Type.TIME: _check_time,
    Type.MICROTIME: _check_microtime,
    Type.BOOLEAN: _check_boolean,
    Type.QUANTITY: _check_quantity,
    Type.INT32: _check_int32,
    Type.INT64: _check_integer(64),
    Type.NUMBER: _check_number,
    Type.INT_OR_STRING: _check_int_or_string,
    Type.OBJECT: _check_nothing,
    Type.ANY: _check_nothing,
}

_GO_SCALARS = {
    Type.STRING: "string",
    Type.BYTES: "[]uint8",
    Type.TIME: "string",
    Type.MICROTIME: "string",
    Type.BOOLEAN: "bool",
    Type.QUANTITY: "resource.Quantity",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.NUMBER: "float64",
    Type.INT_OR_STRING: "int32",
    Type.OBJECT: "runtime.RawExtension",
    Type.ANY: "interface {}",
}
_GO_STRINGS = {
    ("Capabilities", "add"): "v1.Capability",
    ("Capabilities", "drop"): "v1.Capability",
    ("NetworkPolicySpec", "policyTypes"): "v1.PolicyType",
    ("PersistentVolumeClaimSpec", "accessModes"): "v1.PersistentVolumeAccessMode",
    ("PersistentVolumeSpec", "accessModes"): "v1.PersistentVolumeAccessMode",
    ("ResourceQuotaSpec", "scopes"): "v1.ResourceQuotaScope",
    ("ServiceSpec", "ipFamilies"): "v1.IPFamily",
}
"""Lists of strings that have a type of their own, of those that people give a single string."""
_NUMBERS = (Type.INT32, Type.INT64, Type.INT_OR_STRING)


def _unmarshal(value: Any, field: Field, place: _Place) -> str:
    source = _json_type(value)
    if source == "number" and field.type in _NUMBERS:
        source = f"number {value!r}"
    into = f"Go struct field {place.struct}.{place.go_path}" if place.struct else "Go value"
    kind = _go_type(field)
    if named := _GO_STRINGS.get((place.struct, place.go_path.rpartition(".")[2])):
        kind = kind.replace("string", named)
    return f"json: cannot unmarshal {source} into {into} of type {kind}"


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _go_type(field: Field) -> str:
    if field.type is Type.DEFINED:
        package, name = field.definition.rsplit(".", 2)[1:]
        return f"{package}.{name}"
    if field.element is None:
        return _GO_SCALARS[field.type]
    element = _go_type(field.element)
    if field.type is Type.LIST:
        return f"[]{element}"
    return "v1.ResourceList" if element == "resource.Quantity" else f"map[string]{element}"

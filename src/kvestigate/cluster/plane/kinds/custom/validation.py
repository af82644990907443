"""A schema of a custom resource, as a function that finds what is wrong with a value. Pure.

`compiled` turns an OpenAPI v3 schema into a closure `check(value, path, found)` that appends a
cause for each violation. A schema is compiled once for each definition and runs on every write, so
whatever can be known from the schema alone is decided while compiling: a part that says nothing
about strings has no string check at all.

- Each keyword group has a maker in `_MAKERS` (`_string`, `_number`, `_object`, `anyOf` and so on).
  A maker returns None if the schema does not use its keywords. The order of the makers is the order
  in which kube-apiserver reports.
- A check looks at the type that the value *has*: `maxLength` says nothing about a number. That the
  type is wrong is a separate cause (`_mistyped`). Both are reported, as kube-apiserver does.
- Most fields ask for nothing but a type (`plain`). For these, `_object` and `_array` compare the
  Python type of the value and call nothing.
- The fields of an object are compiled when a value first has them: the schemas of large operators
  have thousands of fields, of which an object uses a few.
- `pattern` runs on RE2 (`kube.patterns`), so no pattern of a tenant can stop the server. A text
  that is too long for its pattern is refused.

Texts are those of kube-apiserver, including places that it loses (`_nowhere`). CEL rules
(`x-kubernetes-validations`) are checked in `rules`, defaults and pruning are in `structure`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kvestigate.cluster.plane.kinds.custom.formats import FORMATS, UNCHECKED
from kvestigate.kube import causes, patterns, pauses
from kvestigate.kube.causes import Cause

Schema = Mapping[str, Any]
Problems = list[Cause]
Check = Callable[[Any, str, Problems], None]
"""Adds what is wrong with a value at a path."""

_INTEGERS = {"int32": 2**31, "int64": 2**63}


def compiled(schema: Schema) -> Check:
    """The check of everything that a schema says about a value."""
    pauses.rest_if_due()
    types, form = _types(schema), _format(schema)
    nullable = bool(schema.get("nullable"))
    checks = [made for make in _MAKERS if (made := make(schema)) is not None]

    def check(value: Any, path: str, problems: Problems) -> None:
        pauses.rest_if_due()
        if value is None and nullable:
            return
        if types and _NAMES[type(value)] not in types:
            _mistyped(value, types, form, path, problems)
        for each in checks:
            each(value, path, problems)

    return check


def plain(schema: Schema) -> type | None:
    """The type that is all a schema asks for; None if it asks for more.

    Most fields are like that, and are passed by without a call.
    """
    if not schema.keys() <= _UNCHECKED:
        return None
    return {"string": str, "boolean": bool, "integer": int}.get(schema.get("type", ""))


_UNCHECKED = {"type", "description", "title", "default", "nullable", "example"}


class _Unplain:
    """A type that no value has, so that the check always runs."""


def _types(schema: Schema) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def _format(schema: Schema) -> str:
    """The format of a value of this type, if it is one that means something to the server."""
    form = schema.get("format") or ""
    numeric = {"integer": ("int32", "int64"), "number": ("float", "double")}
    type_ = schema.get("type") or "string"
    known = form in FORMATS or form in UNCHECKED
    return form if (form in numeric[type_] if type_ in numeric else known) else ""


_NAMES = {
    str: "string",
    int: "integer",
    bool: "boolean",
    float: "number",
    dict: "object",
    list: "array",
    type(None): "null",
}


_EXACT = 2**53
"""From here on a double may stand for several integers, and passes for none."""
_MACHINE_FORMATS = {int: "int64", float: "float64"}
"""What numbers are to the server."""


def _mistyped(value: Any, types: tuple[str, ...], form: str, path: str, problems: Problems) -> None:
    """Report a value of the wrong type. 2.0 passes for an integer, and 2 for a number."""
    kind = type(value)
    if kind is float and value.is_integer() and abs(value) < _EXACT and "integer" in types:
        return
    if kind is int and "number" in types:
        return
    wanted, actual = ",".join(types), _NAMES[kind]
    if form and kind in (str, list):
        if "number" not in types and "integer" not in types:
            return  # whoever checks the format will know
    elif form and value is not None:
        wanted, actual = form, _MACHINE_FORMATS.get(kind, "")
    why = f'{path} in body must be of type {wanted}: "{actual}"'
    problems.append(causes.wrong_type(path, actual, why))


def _nowhere(text: str) -> Cause:
    """A cause without a field: kube-apiserver reports these at `<nil>`."""
    return causes.invalid("<nil>", "", text)


# -- several schemas at once ------------------------------------------------------------


def _any_of(schema: Schema) -> Check | None:
    checks = [compiled(each) for each in schema.get("anyOf") or ()]
    if not checks:
        return None

    def check(value: Any, path: str, problems: Problems) -> None:
        failures = [_alone(each, value, path) for each in checks]
        if all(failures):
            problems.append(_nowhere(f'"{path}" must validate at least one schema (anyOf)'))
            problems += failures[0]

    return check


def _one_of(schema: Schema) -> Check | None:
    checks = [compiled(each) for each in schema.get("oneOf") or ()]
    if not checks:
        return None

    def check(value: Any, path: str, problems: Problems) -> None:
        failures = [_alone(each, value, path) for each in checks]
        valid = failures.count([])
        if valid == 1:
            return
        outcome = f"Found {valid} valid alternatives" if valid else "Found none valid"
        problems.append(
            _nowhere(f'"{path}" must validate one and only one schema (oneOf). {outcome}')
        )
        if not valid:
            problems += failures[0]

    return check


def _all_of(schema: Schema) -> Check | None:
    checks = [compiled(each) for each in schema.get("allOf") or ()]
    if not checks:
        return None

    def check(value: Any, path: str, problems: Problems) -> None:
        failures = [_alone(each, value, path) for each in checks]
        if not any(failures):
            return
        for each in failures:
            problems += each
        none = ". None validated" if all(failures) else ""
        problems.append(_nowhere(f'"{path}" must validate all the schemas (allOf){none}'))

    return check


def _not(schema: Schema) -> Check | None:
    if not schema.get("not"):
        return None
    inner = compiled(schema["not"])

    def check(value: Any, path: str, problems: Problems) -> None:
        if not _alone(inner, value, path):
            problems.append(_nowhere(f'"{path}" must not validate the schema (not)'))

    return check


def _alone(check: Check, value: Any, path: str) -> Problems:
    problems: Problems = []
    check(value, path, problems)
    return problems


# -- by what the value is ---------------------------------------------------------------


def _string(schema: Schema) -> Check | None:
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    pattern, allows = schema.get("pattern"), FORMATS.get(schema.get("format") or "")
    if longest is None and shortest is None and not pattern and allows is None:
        return None

    def check(value: Any, path: str, problems: Problems) -> None:
        if type(value) is not str:
            return
        if longest is not None and len(value) > longest:
            problems.append(causes.too_long(path, longest))
        if shortest is not None and len(value) < shortest:
            why = f"{path} in body should be at least {shortest} chars long"
            problems.append(causes.invalid(path, value, why))
        if pattern and (why := _mismatch(pattern, value)):
            problems.append(causes.invalid(path, value, f"{path} in body {why}"))
        if allows is not None and not allows(value):
            why = f'{path} in body must be of type {schema["format"]}: "{value}"'
            problems.append(causes.wrong_type(path, value, why))

    return check


def _mismatch(pattern: str, value: str) -> str:
    """Why the value is refused, empty if it matches."""
    try:
        matches = patterns.compiled(pattern).matches(value)
    except patterns.TooCostly as error:
        return f"could not be matched with '{pattern}': {error}"
    except patterns.InvalidPattern as error:  # stored by a version that accepted more
        return f"could not be matched with '{pattern}': error parsing regexp: {error}"
    return "" if matches else f"should match '{pattern}'"


def _number(schema: Schema) -> Check | None:
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    form = schema.get("format") or ""
    whole = schema.get("type") == "integer"
    limit = _INTEGERS.get(form, 2**63) if whole else None
    if low is None and high is None and step is None and limit is None:
        return None

    def check(value: Any, path: str, problems: Problems) -> None:
        if type(value) is not int and type(value) is not float:
            return
        why = ""
        if limit is not None and not (-limit <= value < limit and value == int(value)):
            kind = f"with format {form}" if form in _INTEGERS else "(default format)"
            problems.append(_nowhere(f"Checked value must be of type integer {kind} in {path}"))
        if step is not None and abs(value / step - round(value / step)) > _NEARLY:
            why = f"{path} in body should be a multiple of {_plain(step)}"
            problems.append(causes.invalid(path, value, why))
        # The server compares integers with integers, whatever it was kind.
        most = int(high) if high is not None and type(value) is int else high
        if most is not None and (value >= most if below else value > most):
            why = f"{path} in body should be less than {'' if below else 'or equal to '}"
            problems.append(causes.invalid(path, value, f"{why}{_plain(most)}"))
        least = int(low) if low is not None and type(value) is int else low
        if least is not None and (value <= least if above else value < least):
            why = f"{path} in body should be greater than {'' if above else 'or equal to '}"
            problems.append(causes.invalid(path, value, f"{why}{_plain(least)}"))

    return check


_NEARLY = 1e-9


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def _array(schema: Schema) -> Check | None:
    most, least = schema.get("maxItems"), schema.get("minItems")
    items = schema.get("items")
    each = compiled(items) if isinstance(items, dict) else None
    usual = (plain(items) if isinstance(items, dict) else None) or _Unplain
    if most is None and least is None and each is None:
        return None

    def check(value: Any, path: str, problems: Problems) -> None:
        if type(value) is not list:
            return
        if each is not None:
            for position, element in enumerate(value):
                if type(element) is not usual:
                    each(element, f"{path}[{position}]", problems)
        if least is not None and len(value) < least:
            why = f"{path} in body should have at least {least} items"
            problems.append(causes.invalid(path, len(value), why))
        if most is not None and len(value) > most:
            problems.append(causes.too_many(path, len(value), most))

    return check


def _object(schema: Schema) -> Check | None:
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    required = tuple(schema.get("required") or ())
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    fields: dict[str, tuple[type, Check]] = {}
    """Compiled when an object has one: of thousands, most objects have a few."""
    extra = schema.get("additionalProperties")
    other = _field(extra) if isinstance(extra, dict) else None
    if not (properties or required or other) and most is None and least is None:
        return None

    def check(value: Any, path: str, problems: Problems) -> None:
        if type(value) is not dict:
            return
        if least is not None and len(value) < least:
            why = f"{path} in body should have at least {least} properties"
            problems.append(causes.invalid(path, len(value), why))
        if most is not None and len(value) > most:
            problems.append(causes.too_many(path, len(value), most))
        prefix = f"{path}." if path else ""
        for name, inner in value.items():
            field = fields.get(name)
            if field is None:
                each = properties.get(name)
                field = other if each is None else fields.setdefault(name, _field(each))
            if field is not None and type(inner) is not field[0]:
                field[1](inner, prefix + name, problems)
        for name in required:
            if name not in value:
                problems.append(causes.required(prefix + name))

    return check


def _field(schema: Schema) -> tuple[type, Check]:
    """The Python type that needs no further check, and the check for anything else."""
    usual = plain(schema)
    if usual is None:
        return _Unplain, compiled(schema)

    def check(value: Any, path: str, problems: Problems) -> None:
        compiled(schema)(value, path, problems)  # so seldom that it is not worth keeping

    return usual, check


def _enum(schema: Schema) -> Check | None:
    allowed = schema.get("enum")
    if not allowed:
        return None
    shown = [each if isinstance(each, str) else _json(each) for each in allowed]

    def check(value: Any, path: str, problems: Problems) -> None:
        if not any(
            value == each and isinstance(value, bool) is isinstance(each, bool) for each in allowed
        ):
            problems.append(causes.unsupported(path, value, shown))

    return check


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


_MAKERS = (_any_of, _one_of, _all_of, _not, _string, _number, _array, _enum, _object)

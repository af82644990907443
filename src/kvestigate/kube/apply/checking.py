"""Whether a configuration fits its type, in the words of upstream's typed values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kvestigate.kube.apply.elements import Unkeyed, step
from kvestigate.kube.apply.fieldset import text
from kvestigate.kube.apply.shapes import Scalar, Shape
from kvestigate.kube.causes import show
from kvestigate.kube.facts import Ownership
from kvestigate.kube.patches import values


def misfit(config: dict[str, Any], shape: Shape) -> str:
    """What is wrong with a configuration; empty if nothing is."""
    mismatches = [f"{path}: {what}" if path else what for path, what in _check(config, shape, "")]
    if len(mismatches) > 1:
        return "\n".join(["errors:", *(f"  {each}" for each in mismatches)])
    return mismatches[0] if mismatches else ""


class Foreign(NamedTuple):
    """A value that JSON has no place for, as Go shows it; it fits nowhere."""

    syntax: str
    text: str
    type: str

    def __str__(self) -> str:
        return self.text


Findings = Iterator[tuple[str, str]]


def _check(value: Any, shape: Shape, path: str) -> Findings:
    if value is None:
        return
    if isinstance(value, dict) and dict in shape.accepts:
        yield from _check_fields(value, shape, path)
    elif isinstance(value, list) and list in shape.accepts:
        yield from _check_elements(value, shape, path)
    elif not _fits(value, shape):
        yield path, _complaint(value, shape)


def _check_fields(value: dict[str, Any], shape: Shape, path: str) -> Findings:
    for name, inner in value.items():
        child = shape.fields.get(name, shape.element)
        if child is not None:
            yield from _check(inner, child, f"{path}.{name}")
        elif dict in shape.accepts and Scalar.ANY not in shape.accepts:
            yield f"{path}.{name}", "field not declared in schema"
            return


def _check_elements(value: list[Any], shape: Shape, path: str) -> Findings:
    seen = set()
    for index, inner in enumerate(value):
        at = f"i:{index}"
        if shape.ownership in (Ownership.SET, Ownership.KEYED):
            try:
                at = step(inner, shape)
            except Unkeyed as error:
                yield path, f"element {index}: {error}"
                return
            if at in seen:
                yield path, f"duplicate entries for key {text((at,))}"
            seen.add(at)
        if shape.element is not None:
            yield from _check(inner, shape.element, path + text((at,)))


_PYTHON = {
    Scalar.STRING: (str,),
    Scalar.BOOLEAN: (bool,),
    Scalar.NUMBER: (int, float),
    Scalar.ANY: (str, bool, int, float),
}


def _fits(value: Any, shape: Shape) -> bool:
    for accepted in shape.accepts:
        if isinstance(accepted, Scalar) and type(value) in _PYTHON[accepted]:
            return True
    return False


def _complaint(value: Any, shape: Shape) -> str:
    wanted = next((each for each in shape.accepts if isinstance(each, Scalar)), None)
    if wanted is Scalar.NUMBER:
        return f"expected {wanted.value}, got {_go_type(value)}"
    if wanted is Scalar.STRING:
        return f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
    if wanted is not None:
        return f"expected {wanted.value}, got &{{{values.shown(value)}}}"
    what = "map" if dict in shape.accepts else "list"
    return f"expected {what}, got &{{{values.shown(value)}}}"


def _go_type(value: Any) -> str:
    return value.type if isinstance(value, Foreign) else values.type_of(value)


def _go_syntax(value: Any) -> str:
    """As Go's `%#v`."""
    if isinstance(value, Foreign):
        return value.syntax
    if isinstance(value, dict):
        inner = ", ".join(f"{show(key)}:{_go_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
    return "interface {}(nil)" if value is None else show(value)

"""Why an object is invalid: field causes and the 422 Status made of them.

A cause pairs a field path with one of Kubernetes' reasons. The texts are part of the API
(clients show and match them), so they follow kube-apiserver's to the letter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kvestigate.errors import Invalid


class Cause(msgspec.Struct, frozen=True, gc=False):
    reason: str
    """`FieldValueRequired`"""
    field: str
    """`spec.containers[0].image`"""
    message: str
    """`Required value: ...`, without the field."""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


Causes = Iterable[Cause]
"""What a check finds: most are generators that yield a cause for each mistake."""


def required(field: object, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", str(field), _text("Required value", detail))


def invalid(field: object, value: Any, detail: str = "") -> Cause:
    return Cause("FieldValueInvalid", str(field), _text(f"Invalid value: {show(value)}", detail))


def duplicate(field: object, value: Any, detail: str = "") -> Cause:
    return Cause(
        "FieldValueDuplicate", str(field), _text(f"Duplicate value: {show(value)}", detail)
    )


def missing(field: object, value: Any) -> Cause:
    return Cause("FieldValueNotFound", str(field), f"Not found: {show(value)}")


def forbidden(field: object, detail: str) -> Cause:
    return Cause("FieldValueForbidden", str(field), _text("Forbidden", detail))


def too_long(field: object, limit: int) -> Cause:
    return Cause("FieldValueTooLong", str(field), f"Too long: may not be more than {limit} bytes")


def too_many(field: object, actual: int, limit: int) -> Cause:
    return Cause(
        "FieldValueTooMany", str(field), f"Too many: {actual}: must have at most {limit} items"
    )


def unsupported(field: object, value: Any, allowed: Sequence[str]) -> Cause:
    listed = ", ".join(f'"{choice}"' for choice in allowed)
    detail = f"supported values: {listed}" if listed else ""
    return Cause(
        "FieldValueNotSupported", str(field), _text(f"Unsupported value: {show(value)}", detail)
    )


def wrong_type(field: object, value: Any, detail: str) -> Cause:
    return Cause(
        "FieldValueTypeInvalid", str(field), _text(f"Invalid value: {show(value)}", detail)
    )


def show(value: Any) -> str:
    """A value as Kubernetes prints it inside a cause."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _LONGEST:
        value = int(value)  # Go writes no fraction where there is none
    text = _encode(value).decode()
    if isinstance(value, dict | list):  # Go writes these so that they are safe in HTML
        for char in "<>&":
            text = text.replace(char, f"\\u{ord(char):04x}")
    return text


_LONGEST = 1e21
"""From here on Go writes numbers with an exponent."""
_encode = msgspec.json.Encoder().encode


def reject(kind: str, group: str, name: str, causes: Iterable[Cause]) -> Invalid:
    """The 422 for an object with `causes`."""
    listed = list(causes)
    texts = list(dict.fromkeys([f"{cause.field}: {cause.message}" for cause in listed]))
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details: dict[str, Any] = {"name": name} if name else {}
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    details["causes"] = [
        {"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in listed
    ]
    qualified = f"{kind}.{group}" if group else kind
    return Invalid(f'{qualified} "{name}" is invalid: {text}', details=details)


def _text(head: str, detail: str) -> str:
    return f"{head}: {detail}" if detail else head

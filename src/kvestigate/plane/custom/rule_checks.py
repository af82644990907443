"""What the validation rules of a definition must be. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvestigate.kube import causes
from kvestigate.kube.causes import Cause
from kvestigate.kube.cel import CompileError, compiled
from kvestigate.kube.cel import schema as cel_schema
from kvestigate.kube.cel.types import Type
from kvestigate.plane.custom import jsonpath
from kvestigate.plane.custom.rules import RULES, mentions_old, variables

Schema = Mapping[str, Any]
Causes = Iterator[Cause]

_REASONS = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)


def forms(schema: Schema, path: str) -> Causes:
    """What is wrong with rules before one looks at their expressions."""
    for position, rule in enumerate(schema.get(RULES) or ()):
        at = f"{path}.{RULES}[{position}]"
        message, source = rule.get("message") or "", rule.get("rule") or ""
        if not source.strip():
            yield causes.required(f"{at}.rule", "rule is not specified")
        if message and not message.strip():
            why = "must be non-empty if specified"
            yield causes.invalid(f"{at}.message", message, why)
        elif "\n" in message.strip():
            yield causes.invalid(f"{at}.message", message, "must not contain line breaks")
        elif "\n" in source.strip() and not message and not rule.get("messageExpression"):
            why = "message must be specified if rule contains line breaks"
            yield causes.required(f"{at}.message", why)
        if (reason := rule.get("reason")) is not None and reason not in _REASONS:
            yield causes.unsupported(f"{at}.reason", reason, _REASONS)
        told = rule.get("fieldPath") or ""
        if told and not _leads(schema, told):
            yield causes.invalid(f"{at}.fieldPath", told, "must be a valid path")


def _leads(schema: Schema, path: str) -> bool:
    if not path.startswith((".", "[")):
        return False
    try:
        jsonpath.parse(path)
    except jsonpath.Unreadable:
        return False
    names = jsonpath.names(path) if "[" not in path else ()
    inner: Any = schema
    for name in names:
        fields = inner.get("properties") or {}
        extra = inner.get("additionalProperties")
        inner = fields.get(name) or (extra if isinstance(extra, dict) else None)
        if inner is None:
            return False
    return True


def expressions(schema: Schema, path: str, *, root: bool = True, apart: str = "") -> Causes:
    """What is wrong with the expressions, here and inside.

    `apart` is the path of the list around this, if its elements cannot be told apart.
    """
    told = schema.get(RULES) or ()
    type_ = cel_schema.type_of(schema, root=root) if told else None
    for position, rule in enumerate(told):
        at = f"{path}.{RULES}[{position}]"
        if apart and mentions_old(rule["rule"]):
            why = (
                f"oldSelf cannot be used on the uncorrelatable portion of the schema within {apart}"
            )
            yield causes.invalid(f"{at}.rule", rule["rule"], why)
        elif type_ is not None:
            yield from _expressions(rule, type_, at)
    for name in sorted(schema.get("properties") or ()):
        inner = schema["properties"][name]
        yield from expressions(inner, f"{path}.properties[{name}]", root=False, apart=apart)
    if isinstance(items := schema.get("items"), dict):
        keyed = schema.get("x-kubernetes-list-type") == "map"
        around = apart or ("" if keyed else path)
        yield from expressions(items, f"{path}.items", root=False, apart=around)
    if isinstance(extra := schema.get("additionalProperties"), dict):
        yield from expressions(extra, f"{path}.additionalProperties", root=False, apart=apart)


def _expressions(rule: Mapping[str, Any], type_: Type, at: str) -> Causes:
    scope = variables(type_, rule)
    why = _complaint(rule["rule"], scope, "bool", "")
    if why:
        yield causes.invalid(f"{at}.rule", _dump(rule), why)
    if (rule.get("messageExpression") or "").strip():
        why = _complaint(rule["messageExpression"], scope, "string", "messageExpression ")
        if why:
            yield causes.invalid(f"{at}.messageExpression", _dump(rule), why)


def _complaint(source: str, scope: dict[str, Type], wanted: str, what: str) -> str:
    try:
        program = compiled(source, scope)
    except CompileError as error:
        if error.constant:
            return f"{what or 'program '}instantiation failed: {error}"
        return f"{what}compilation failed: {error}"
    if program.type.name not in (wanted, "dyn"):
        return f"{what or 'cel expression '}must evaluate to a {wanted}"
    return ""


def _dump(rule: Mapping[str, Any]) -> dict[str, Any]:
    """The rule as the server's own struct has it."""
    return {
        "Rule": rule["rule"],
        "Message": rule.get("message") or "",
        "MessageExpression": rule.get("messageExpression") or "",
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath") or "",
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }

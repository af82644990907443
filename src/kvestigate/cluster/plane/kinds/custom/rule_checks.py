"""What the validation rules of a definition must be. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvestigate.cluster.plane.kinds.custom import jsonpath
from kvestigate.cluster.plane.kinds.custom.rule_costs import Ledger, repeated
from kvestigate.cluster.plane.kinds.custom.rules import RULES, mentions_old, variables
from kvestigate.kube import causes
from kvestigate.kube.causes import Causes
from kvestigate.kube.cel import CompileError, compiled
from kvestigate.kube.cel import schema as cel_schema
from kvestigate.kube.cel.extents import Extent, extent_of
from kvestigate.kube.cel.program import estimated
from kvestigate.kube.cel.types import Type

Schema = Mapping[str, Any]

_REASONS = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)


_LEADING = frozenset({"additionalProperties", "items", "properties", RULES})
"""Fields of a schema that are rules, or may lead to some."""


def forms(schema: Schema, path: str) -> Causes:
    """Problems of rules that do not depend on their expressions."""
    for position, rule in enumerate(schema.get(RULES) or ()):
        at = f"{path}.{RULES}[{position}]"
        message, source = rule.get("message") or "", rule.get("rule") or ""
        if not source.strip():
            yield causes.required(f"{at}.rule", "rule is not specified")
        elif message and not message.strip():
            why = "must be non-empty if specified"
            yield causes.invalid(f"{at}.message", message, why)
        elif "\n" in message.strip():
            yield causes.invalid(f"{at}.message", message, "must not contain line breaks")
        elif "\n" in source.strip() and not message:
            why = "message must be specified if rule contains line breaks"
            yield causes.required(f"{at}.message", why)
        expression = rule.get("messageExpression") or ""
        if expression and not expression.strip():
            why = "messageExpression must be non-empty if specified"
            yield causes.required(f"{at}.messageExpression", why)
        if (reason := rule.get("reason")) is not None and reason not in _REASONS:
            yield causes.unsupported(f"{at}.reason", reason, _REASONS)
        field = rule.get("fieldPath") or ""
        if field and not _leads(schema, field):
            yield causes.invalid(f"{at}.fieldPath", field, "must be a valid path")


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


def expressions(schema: Schema, path: str) -> Causes:
    """Problems of the expressions in a schema, including their estimated cost."""
    checker = _Checker()
    yield from checker.check(schema, path, times=1, root=True)
    yield from checker.ledger.close(path)


class _Checker:
    def __init__(self) -> None:
        self.ledger = Ledger()

    def check(
        self, schema: Schema, path: str, *, times: int | None, root: bool = False, apart: str = ""
    ) -> Causes:
        """`apart` is the path of the list around this, if its elements cannot be rules apart, and
        `times` how often there can be a value, if anything limits it."""
        inside = repeated(schema, times)
        fields = schema.get("properties") or {}
        for name in sorted([name for name in fields if not _LEADING.isdisjoint(fields[name])]):
            inner = fields[name]
            at = f"{path}.properties[{name}]"
            yield from self.check(inner, at, times=inside, apart=apart)
        if isinstance(items := schema.get("items"), dict):
            keyed = schema.get("x-kubernetes-list-type") == "map"
            around = apart or ("" if keyed else path)
            yield from self.check(items, f"{path}.items", times=inside, apart=around)
        if isinstance(extra := schema.get("additionalProperties"), dict):
            at = f"{path}.additionalProperties"
            yield from self.check(extra, at, times=inside, apart=apart)
        rules = schema.get(RULES) or ()
        type_ = cel_schema.type_of(schema, root=root) if rules else None
        extent = extent_of(schema, root=root) if rules else None
        for position, rule in enumerate(rules):
            at = f"{path}.{RULES}[{position}]"
            if apart and mentions_old(rule["rule"]):
                why = (
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within "
                    f"{apart}"
                )
                yield causes.invalid(f"{at}.rule", rule["rule"], why)
            elif type_ is not None and extent is not None:
                yield from self._rule(rule, type_, extent, times, at)
                if rule.get("optionalOldSelf") is not None and not mentions_old(rule["rule"]):
                    why = "may not be set if oldSelf is not used in rule"
                    yield causes.invalid(f"{at}.optionalOldSelf", rule["optionalOldSelf"], why)

    def _rule(
        self, rule: Mapping[str, Any], type_: Type, extent: Extent, times: int | None, at: str
    ) -> Causes:
        scope = variables(type_, rule)
        why = _complaint(rule["rule"], scope, "bool", "")
        if why:
            yield causes.invalid(f"{at}.rule", rule, why)
        else:
            cost = estimated(rule["rule"], scope, extent)
            often = extent.repeats if times is None else times
            yield from self.ledger.enter(f"{at}.rule", "rule", cost * often)
        if source := (rule.get("messageExpression") or "").strip():
            why = _complaint(rule["messageExpression"], scope, "string", "messageExpression ")
            if why:
                yield causes.invalid(f"{at}.messageExpression", rule, why)
            else:
                cost = estimated(source, scope, extent)
                yield from self.ledger.enter(f"{at}.messageExpression", "messageExpression", cost)


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

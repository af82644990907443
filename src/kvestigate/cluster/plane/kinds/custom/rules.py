"""The validation rules of a schema (`x-kubernetes-validations`), compiled and put to objects. Pure.

A rule that looks at `oldSelf` is one about changes: it is only asked where there was a value
before. Elsewhere nobody must repair what a rule refuses if it stays as it was: that is a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kvestigate.kube import causes
from kvestigate.kube.causes import Cause
from kvestigate.kube.cel import CompileError, EvalError, OutOfBudget, Program, Purse, compiled
from kvestigate.kube.cel import schema as cel_schema
from kvestigate.kube.cel.failures import NO_OVERLOAD
from kvestigate.kube.cel.types import Type, optional_of
from kvestigate.kube.cel.values import NOTHING, Optional

Schema = Mapping[str, Any]
RULES = "x-kubernetes-validations"

_ABSENT = object()
_UNCLEAR = (
    "'no such overload': call arguments did not match a supported operator, function or macro "
    "signature for rule: "
)
_COSTLY = "call cost exceeds limit for rule: "


@dataclass(frozen=True, slots=True)
class Rule:
    declared: Mapping[str, Any]
    """As the schema has it."""
    program: Program
    message: Program | None
    """What makes the message."""
    kind: str
    """The type of the value that it judges: `object`."""

    @property
    def about_change(self) -> bool:
        return mentions_old(self.declared["rule"])

    @property
    def text(self) -> str:
        return str(self.declared.get("message") or self.declared["rule"]).strip()

    def judge(self, value: Any, before: Any, shown: Any, path: str, purse: Purse) -> Cause | None:
        """What is wrong with the value, which was `before`; None if it is as it should be."""
        if self.declared.get("optionalOldSelf"):
            before = NOTHING if before is _ABSENT else Optional(True, before)
        given = (value, before) if self.about_change else (value,)
        try:
            if self.program.run(*given, purse=purse) is True:
                return None
        except EvalError as error:
            return causes.invalid(path or "<nil>", self.kind, self._failure(str(error)))
        except OutOfBudget:
            return causes.invalid(path or "<nil>", self.kind, _COSTLY + self.text)
        return self._refusal(self._told_message(given, purse), shown, path)

    def _failure(self, why: str) -> str:
        if why == NO_OVERLOAD:
            return _UNCLEAR + self.text
        return f"{why} evaluating rule: {self.text}"

    def _told_message(self, given: tuple[Any, ...], purse: Purse) -> str:
        if self.message is not None:
            try:
                made = self.message.run(*given, purse=purse)
            except (EvalError, OutOfBudget):
                made = ""
            if isinstance(made, str) and made.strip() and "\n" not in made:
                return made.strip()
        return str(self.declared.get("message") or "").strip() or f"failed rule: {self.text}"

    def _refusal(self, message: str, shown: Any, path: str) -> Cause:
        where = _below(path, self.declared.get("fieldPath") or "") or "<nil>"
        reason = self.declared.get("reason") or "FieldValueInvalid"
        if reason == "FieldValueForbidden":
            return causes.forbidden(where, message)
        if reason == "FieldValueRequired":
            return causes.required(where, message)
        if reason == "FieldValueDuplicate":
            return Cause(reason, where, "Duplicate value")
        if isinstance(shown, dict | list):  # too much to repeat
            return Cause(reason, where, f"Invalid value: {message}")
        return causes.invalid(where, shown, message)


def _below(path: str, inner: str) -> str:
    return path + inner if path else inner.removeprefix(".")


def mentions_old(source: str) -> bool:
    return "oldSelf" in source


def variables(type_: Type, rule: Mapping[str, Any]) -> dict[str, Type]:
    """The variables of a rule and their types."""
    if not mentions_old(rule["rule"]):
        return {"self": type_}
    return {"self": type_, "oldSelf": optional_of(type_) if rule.get("optionalOldSelf") else type_}


@dataclass(slots=True)
class Node:
    """The rules of one schema, and the schemas inside of it that have any."""

    rules: list[Rule] = field(default_factory=list)
    convert: Callable[[Any], Any] | None = None
    fields: dict[str, Node] = field(default_factory=dict)
    items: Node | None = None
    extra: Node | None = None
    keys: tuple[str, ...] = ()
    """What tells the items apart, if anything does."""

    def __bool__(self) -> bool:
        return bool(self.rules or self.fields or self.items or self.extra)


def compile_rules(schema: Schema, *, root: bool = True) -> Node | None:
    """None if there is no rule anywhere in the schema."""
    node = Node()
    if schema.get(RULES) and (type_ := cel_schema.type_of(schema, root=root)) is not None:
        node.rules = list(_rules(schema, type_))
        node.convert = cel_schema.converter(schema, root=root)
    for name, each in (schema.get("properties") or {}).items():
        if (inner := compile_rules(each, root=False)) is not None:
            node.fields[name] = inner
    if isinstance(items := schema.get("items"), dict):
        node.items = compile_rules(items, root=False)
        if schema.get("x-kubernetes-list-type") == "map":
            node.keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    if isinstance(extra := schema.get("additionalProperties"), dict):
        node.extra = compile_rules(extra, root=False)
    return node or None


def _rules(schema: Schema, type_: Type) -> Iterator[Rule]:
    for declared in schema[RULES]:
        scope = variables(type_, declared)
        expression = declared.get("messageExpression")
        try:
            program = compiled(declared["rule"], scope)
            message = compiled(expression, scope) if expression else None
        except CompileError:
            continue  # the definition was refused, or made before this was looked at
        yield Rule(declared, program, message, schema.get("type") or "object")


@dataclass(slots=True)
class Findings:
    purse: Purse = field(default_factory=Purse)
    """What all rules about the object pay from."""
    wrong: list[Cause] = field(default_factory=list)
    excused: list[Cause] = field(default_factory=list)
    """Refused by a rule, but as it was before."""


def judge(node: Node, new: Any, old: Any = _ABSENT) -> Findings:
    """Causes for every rule that the object, or its change, violates."""
    findings = Findings()
    _walk(node, new, old, "", findings)
    return findings


def _walk(node: Node, new: Any, old: Any, path: str, findings: Findings) -> None:
    if new is None:
        return
    if node.rules:
        _ask(node, new, old, path, findings)
    if isinstance(new, dict):
        before = old if isinstance(old, dict) else {}
        for name, inner in node.fields.items():
            if name in new:
                where = f"{path}.{name}" if path else name
                _walk(inner, new[name], before.get(name, _ABSENT), where, findings)
        if node.extra is not None:
            for key, value in new.items():
                _walk(node.extra, value, before.get(key, _ABSENT), f"{path}[{key}]", findings)
    elif isinstance(new, list) and node.items is not None:
        known = _by_key(node, old)
        for position, value in enumerate(new):
            was = known.get(_key(node, value), _ABSENT)
            _walk(node.items, value, was, f"{path}[{position}]", findings)


def _ask(node: Node, new: Any, old: Any, path: str, findings: Findings) -> None:
    convert = node.convert or _same
    value = convert(new)
    before = _ABSENT if old is _ABSENT else convert(old)
    unchanged = old is not _ABSENT and new == old
    for rule in node.rules:
        if rule.about_change and old is _ABSENT and not rule.declared.get("optionalOldSelf"):
            continue
        cause = rule.judge(value, before, new, path, findings.purse)
        if cause is not None:
            excused = unchanged and not rule.about_change
            (findings.excused if excused else findings.wrong).append(cause)


def _same(value: Any) -> Any:
    return value


def _by_key(node: Node, old: Any) -> dict[Any, Any]:
    if not node.keys or not isinstance(old, list):
        return {}
    return {_key(node, each): each for each in old}


def _key(node: Node, element: Any) -> Any:
    if not node.keys or not isinstance(element, dict):
        return None
    return tuple(str(element.get(name)) for name in node.keys)

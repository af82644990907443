"""What is wrong with the expressions of a policy, and with what goes along with them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.policies.compilation import (
    BOOL,
    PATCHES,
    TEXT,
    TEXT_OR_NULL,
    Compiler,
)
from kvestigate.cluster.plane.kinds.policies.environment import is_identifier
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")


def check_conditions(compiler: Compiler, within: str, conditions: Sequence[Object]) -> Causes:
    seen: set[str] = set()
    for index, each in enumerate(conditions):
        path, name = f"{within}.matchConditions[{index}]", each.get("name") or ""
        source = each.get("expression") or ""
        if not source.strip():
            yield causes.required(f"{path}.expression")
        else:
            yield from _expression(compiler, f"{path}.expression", source, BOOL)
        yield from checks.needed(f"{path}.name", name, names.qualified_name_problems)
        if name and name in seen:
            yield causes.duplicate(f"{path}.name", name)
        seen.add(name)


def check_variables(compiler: Compiler, declared: Sequence[Object]) -> Causes:
    for index, (name, made) in enumerate(compiler.variables(declared)):
        path = f"spec.variables[{index}]"
        if not name:
            yield causes.required(f"{path}.name", "name is not specified")
        elif not is_identifier(name):
            yield causes.invalid(f"{path}.name", name, "must be a valid CEL identifier")
        if not made.source.strip():
            yield causes.required(f"{path}.expression", "expression is not specified")
        elif made.problem:
            yield causes.invalid(f"{path}.expression", made.source, made.problem)


def check_validations(compiler: Compiler, declared: Sequence[Object]) -> Causes:
    for index, each in enumerate(declared):
        path, source = f"spec.validations[{index}]", each.get("expression") or ""
        if not source.strip():
            yield causes.required(f"{path}.expression", "expression is not specified")
        else:
            yield from _expression(compiler, f"{path}.expression", source, BOOL)
        if made := each.get("messageExpression"):
            at = f"{path}.messageExpression"
            if made.strip():
                yield from _expression(compiler, at, made, TEXT, authorizer=False)
            else:
                yield causes.invalid(at, made, "must be non-empty if specified")
        message = each.get("message") or ""
        if message and not message.strip():
            yield causes.invalid(f"{path}.message", message, "must be non-empty if specified")
        elif "\n" in message.strip():
            yield causes.invalid(f"{path}.message", message, "must not contain line breaks")
        if (reason := each.get("reason")) is not None and reason not in _REASONS:
            yield causes.unsupported(f"{path}.reason", reason, _REASONS)


def check_mutations(compiler: Compiler, declared: Sequence[Object]) -> Causes:
    if not declared:
        yield causes.required("spec.mutations", "mutations must contain at least one item")
    for index, each in enumerate(declared):
        path, kind = f"spec.mutations[{index}]", each.get("patchType") or ""
        if not kind:
            yield causes.required(f"{path}.patchType")
        elif kind not in PATCHES:
            yield causes.unsupported(f"{path}.patchType", kind, tuple(PATCHES))
        else:
            yield from _mutation(compiler, path, kind, each)


def _mutation(compiler: Compiler, path: str, kind: str, rule: Object) -> Causes:
    wanted, _ = PATCHES[kind]
    given = rule.get(wanted)
    if given is None:
        why = f"must be specified when patchType is {kind}"
        yield causes.required(f"{path}.{wanted}", why)
    elif not (given.get("expression") or "").strip():
        yield causes.required(f"{path}.{wanted}.expression")
    elif problem := compiler.mutation(rule).problem:
        yield causes.invalid(f"{path}.{wanted}.expression", given["expression"], problem)
    for name, _ in PATCHES.values():
        if name != wanted and rule.get(name) is not None:
            why = f"must not be specified when patchType is {kind}"
            yield causes.invalid(f"{path}.{name}", f"{{{name}}}", why)


def check_annotations(compiler: Compiler, policy: str, annotations: Sequence[Object]) -> Causes:
    seen: set[str] = set()
    for index, each in enumerate(annotations):
        path, key = f"spec.auditAnnotations[{index}]", each.get("key") or ""
        whole = f"{policy}/{key}"
        yield from checks.each(f"{path}.key", whole, names.qualified_name_problems(whole))
        source = each.get("valueExpression") or ""
        if not source.strip():
            why = "valueExpression is not specified"
            yield causes.required(f"{path}.valueExpression", why)
        else:
            at = f"{path}.valueExpression"
            yield from _expression(compiler, at, source, TEXT_OR_NULL, authorizer=False)
        if key in seen:
            yield causes.duplicate(f"{path}.key", key)
        seen.add(key)


def _expression(
    compiler: Compiler,
    path: str,
    source: str,
    wanted: tuple[str, ...],
    *,
    authorizer: bool = True,
) -> Causes:
    made = compiler.expression(source, wanted, authorizer=authorizer)
    if made.problem:
        yield causes.invalid(path, source, made.problem)

"""The expressions of a policy, compiled, with the problems found in them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvestigate.cluster.plane.kinds.policies import environment
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.kube.cel import CompileError, Program, compiled
from kvestigate.kube.cel.types import DYN, Type

BOOL, TEXT, TEXT_OR_NULL = ("bool",), ("string",), ("string", "null_type")
PATCHES = {
    "ApplyConfiguration": ("applyConfiguration", ("Object",)),
    "JSONPatch": ("jsonPatch", ("list(JSONPatch)",)),
}
"""By patch type: the field that the expression is in, and the type of its value."""


@dataclass(frozen=True, slots=True)
class Expression:
    source: str
    program: Program | None
    problem: str = ""
    """Why there is no program."""


@dataclass(slots=True)
class Compiled:
    """All expressions of one policy, in its order."""

    variables: dict[str, Expression] = field(default_factory=dict)
    conditions: list[Expression] = field(default_factory=list)
    validations: list[Expression] = field(default_factory=list)
    messages: list[Expression | None] = field(default_factory=list)
    annotations: list[Expression] = field(default_factory=list)
    mutations: list[Expression] = field(default_factory=list)


class Compiler:
    """Compiles expressions for a policy, whose variables they may name."""

    def __init__(self, spec: Object) -> None:
        self._has_params = bool(spec.get("paramKind"))
        self._variables: dict[str, Type] | None = None

    def variables(self, declared: Sequence[Object]) -> Iterator[tuple[str, Expression]]:
        """Compile the variables in order: a variable may use those before it."""
        for position, each in enumerate(declared):
            name = each.get("name") or ""
            if not position:
                self._variables = {}
            made = self.expression(each.get("expression") or "", ())
            if self._variables is not None:
                # Whoever names one that is wrong is not to blame for it.
                self._variables[name] = DYN if made.program is None else made.program.type
            yield name, made

    def expression(
        self,
        source: str,
        wanted: tuple[str, ...],
        *,
        authorizer: bool = True,
        patches: bool = False,
    ) -> Expression:
        """Compile an expression. `wanted` are the allowed types of its value; empty allows any."""
        names = environment.scope(
            has_params=self._has_params, has_authorizer=authorizer, variables=self._variables
        )
        source_text = source.strip()
        try:
            program = compiled(source_text, names, patches=patches)
        except CompileError as error:
            kind = "compilation" if not error.constant else "program instantiation"
            return Expression(source, None, f"{kind} failed: {error}")
        if wanted and program.type.name not in wanted and str(program.type) not in wanted:
            listed = wanted[0] if len(wanted) == 1 else f"one of [{' '.join(wanted)}]"
            return Expression(source, None, f"must evaluate to {listed} but got {program.type}")
        return Expression(source, program)

    def mutation(self, rule: Object) -> Expression:
        """Compile the expression of a mutation, which makes a patch."""
        if self._variables is None:
            self._variables = {}
        field, wanted = PATCHES[rule["patchType"]]
        return self.expression(rule[field]["expression"], wanted, patches=True)


def _begun(spec: Object) -> tuple[Compiler, Compiled]:
    """A compiler that has compiled the match conditions and variables of the policy."""
    compiler, made = Compiler(spec), Compiled()
    made.variables = dict(compiler.variables(spec.get("variables") or ()))
    made.conditions = [
        compiler.expression(each["expression"], BOOL) for each in _each(spec, "matchConditions")
    ]
    return compiler, made


def compile_mutating(spec: Object) -> Compiled:
    compiler, made = _begun(spec)
    made.mutations = [compiler.mutation(each) for each in _each(spec, "mutations")]
    return made


def compile_policy(spec: Object) -> Compiled:
    compiler, made = _begun(spec)
    for each in _each(spec, "validations"):
        made.validations.append(compiler.expression(each["expression"], BOOL))
        message = each.get("messageExpression")
        made.messages.append(
            compiler.expression(message, TEXT, authorizer=False) if message else None
        )
    made.annotations = [
        compiler.expression(each["valueExpression"], TEXT_OR_NULL, authorizer=False)
        for each in _each(spec, "auditAnnotations")
    ]
    return made


def _each(spec: Object, name: str) -> list[dict[str, Any]]:
    return spec.get(name) or []

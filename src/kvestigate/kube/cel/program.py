"""An expression that is ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from kvestigate.kube.cel.compiler import Compiler, Run
from kvestigate.kube.cel.extents import Extent
from kvestigate.kube.cel.failures import CompileError, ConstantError
from kvestigate.kube.cel.messages import no_messages
from kvestigate.kube.cel.parser import parse
from kvestigate.kube.cel.signatures import Functions, functions
from kvestigate.kube.cel.types import Type

BUDGET = 1_000_000
"""Rounds of loops that one run may take."""


@dataclass(frozen=True, slots=True)
class Program:
    source: str
    type: Type
    """Of the value."""
    names: tuple[str, ...]
    """The variables that it was compiled for, in order."""
    _run: Run
    _slots: int

    def run(self, *values: Any, budget: int = BUDGET) -> Any:
        """The value, given those of the variables; EvalError if it has none."""
        frame = [budget, *values]
        frame += [None] * (self._slots - len(frame))
        return self._run(frame)


def compiled(source: str, variables: Mapping[str, Type], *, patches: bool = False) -> Program:
    """Raises CompileError, which tells all that is wrong.

    `patches` lets the expression make objects and JSON patches.
    """
    return _compiled(source, tuple(variables.items()), patches)


@lru_cache(maxsize=1024)
def _compiled(source: str, variables: tuple[tuple[str, Type], ...], patches: bool) -> Program:
    from kvestigate.kube.cel.library.patches import messages
    from kvestigate.kube.cel.macros import MACROS

    known = messages if patches else no_messages
    compiler = Compiler(_functions(patches), dict(variables), MACROS, known)
    made = compiler.compile(parse(source))
    if issues := compiler.issues or compiler.doubts:
        raise CompileError(source, issues)
    if compiler.failure:
        raise ConstantError(compiler.failure)
    names = tuple(name for name, _ in variables)
    return Program(source, made.type, names, made.run, compiler.slots)


def estimated(source: str, variables: Mapping[str, Type], extent: Extent) -> int:
    """What a run may cost at most, if the variables have this extent; of what compiles."""
    from kvestigate.kube.cel.cost import estimate
    from kvestigate.kube.cel.macros import MACROS

    node, found = parse(source), dict[int, Type]()
    Compiler(_functions(False), variables, MACROS, types=found).compile(node)
    return estimate(node, found, extent)


@cache
def _functions(patches: bool) -> Functions:
    from kvestigate.kube.cel.library import (
        authorization,
        conversions,
        formats,
        lists,
        networks,
        operators,
        optionals,
        quantities,
        semver,
        strings,
        times,
        urls,
    )
    from kvestigate.kube.cel.library import patches as patching

    libraries = (conversions, formats, lists, networks, operators, optionals, quantities)
    others = (authorization, semver, strings, times, urls)
    more = (patching,) if patches else ()
    return functions(*[each.FUNCTIONS for each in (*libraries, *others, *more)])

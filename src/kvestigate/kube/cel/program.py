"""An expression that is ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from kvestigate.kube.cel.budget import PER_CALL, Purse
from kvestigate.kube.cel.compiler import Compiler, Run
from kvestigate.kube.cel.extents import Extent
from kvestigate.kube.cel.failures import CompileError, ConstantError, EvalError, Issue, OutOfBudget
from kvestigate.kube.cel.messages import no_messages
from kvestigate.kube.cel.parser import TOO_DEEP, parse
from kvestigate.kube.cel.signatures import Functions, functions
from kvestigate.kube.cel.types import Type


@dataclass(frozen=True, slots=True)
class Program:
    source: str
    type: Type
    """Of the value."""
    names: tuple[str, ...]
    """The variables that it was compiled for, in order."""
    _run: Run
    _slots: int

    def run(self, *values: Any, budget: int = PER_CALL, purse: Purse | None = None) -> Any:
        """The value, given those of the variables; EvalError if it has none.

        Raises OutOfBudget if the run would cost more than `budget`, or than is left in `purse`.
        """
        granted = budget if purse is None else min(budget, purse.left)
        frame = [granted, *values]
        frame += [None] * (self._slots - len(frame))
        try:
            return self._run(frame)
        except RecursionError:
            raise OutOfBudget from None
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise EvalError(f"no value: {error}") from error  # what no function has thought of
        finally:
            if purse is not None:
                purse.left -= granted - max(frame[0], 0)


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
    try:
        made = compiler.compile(parse(source))
    except RecursionError:
        raise CompileError(source, [Issue(0, TOO_DEEP)]) from None
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
    from kvestigate.kube.cel.sizes import MOST

    node, found = parse(source), dict[int, Type]()
    Compiler(_functions(False), variables, MACROS, types=found).compile(node)
    try:
        return estimate(node, found, extent)
    except RecursionError:
        return MOST


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

"""Literals that are wrong for the function they are given to, told before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvestigate.kube import patterns
from kvestigate.kube.cel.failures import EvalError, Issue
from kvestigate.kube.cel.library import times
from kvestigate.kube.cel.syntax import Call, Literal
from kvestigate.kube.patterns import InvalidPattern


def _checking(name: str, check: Callable[[Any], object]) -> Callable[[Call], Issue | None]:
    def validate(node: Call) -> Issue | None:
        argument = node.args[-1] if node.args else None
        if not isinstance(argument, Literal) or not isinstance(argument.value, str):
            return None
        try:
            check(argument.value)
        except (EvalError, InvalidPattern):
            return Issue(argument.at, f"invalid {name} argument")
        return None

    return validate


VALIDATORS = {
    "matches": _checking("matches", patterns.compiled),
    "duration": _checking("duration", times.duration),
    "timestamp": _checking("timestamp", times.timestamp),
}

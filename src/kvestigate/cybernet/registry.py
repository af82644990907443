"""Which operations of the one catalog a cyberspace offers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kvestigate.cybernet.policy import is_dangerous
from kvestigate.errors import InputError, nearest
from kvestigate.operation import Operation

Declared = Operation[Any, Any]


def exposable(operations: Iterable[Declared]) -> dict[str, Declared]:
    """Those that a cyberspace may list."""
    return {it.name: it for it in operations if not is_dangerous(it)}


def offered(allow: Iterable[str], operations: Iterable[Declared]) -> Mapping[str, Declared]:
    """Those that are listed; one that no agent may have is a mistake in the configuration."""
    known = {it.name: it for it in operations}
    possible = exposable(known.values())
    for index, name in enumerate(allow):
        where = f"operations.allow[{index}]"
        if name in possible:
            continue
        if name in known:
            raise InputError(
                f"{where}: {name!r} is reserved for operators and never offered to agents",
                hint=f"remove it; there are: {', '.join(possible)}",
            )
        near = nearest(name, possible)
        raise InputError(
            f"{where}: there is no operation {name!r}",
            hint=f"did you mean {near}?" if near else f"there are: {', '.join(possible)}",
        )
    return {name: possible[name] for name in allow}

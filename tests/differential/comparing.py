"""Where two runs of a script differ, one line a place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.differential.script import Script

Exchange = dict[str, Any]
_WIDTH = 300


def differences(script: Script, real: list[Exchange], ours: list[Exchange]) -> dict[int, list[str]]:
    """The number of each step that differs, from 1, and what differs in it."""
    found = {}
    for number, (step, theirs, own) in enumerate(
        zip(script.steps, real, ours, strict=True), start=1
    ):
        head = f"step {number} {step.method} {step.path}"
        if lines := [f"{head}\n    {line}" for line in _compare(theirs, own)]:
            found[number] = lines
    return found


def listed(found: dict[int, list[str]]) -> str:
    """One line a difference."""
    return "\n".join(line for lines in found.values() for line in lines)


def _compare(real: Exchange, ours: Exchange) -> Iterator[str]:
    if real["status"] == ours["status"]:
        yield from _walk(real, ours, "")
    else:
        # Nothing else can be equal then: show both as a whole.
        yield f"real {_show(real)}\n    ours {_show(ours)}"


def _walk(real: Any, ours: Any, path: str) -> Iterator[str]:
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in [*real, *(key for key in ours if key not in real)]:
            where = f"{path}.{key}" if path else key
            if key not in ours:
                yield f"{where}: real {_show(real[key])}, ours has none"
            elif key not in real:
                yield f"{where}: real has none, ours {_show(ours[key])}"
            else:
                yield from _walk(real[key], ours[key], where)
    elif isinstance(real, list) and isinstance(ours, list):
        for index, (left, right) in enumerate(zip(real, ours, strict=False)):
            yield from _walk(left, right, f"{path}[{index}]")
        if len(real) != len(ours):
            rest = real[len(ours) :] or ours[len(real) :]
            whose = "real" if len(real) > len(ours) else "ours"
            yield f"{path}: {len(real)} in real, {len(ours)} in ours; only {whose} {_show(rest)}"
    elif real != ours or isinstance(real, bool) != isinstance(ours, bool):
        yield f"{path}: real {_show(real)}\n    {' ' * len(path)}  ours {_show(ours)}"


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"

"""The tools of a cyberspace, as MCP describes them: one for each operation. Pure."""

from __future__ import annotations

import re
from typing import Any

from kvestigate.cybernet.refusals import of_command_line
from kvestigate.operation import Effect, Operation


def tool_name(operation: str) -> str:
    """Many clients take only letters, digits, `_` and `-` in the name of a tool."""
    return operation.replace(".", "_")


def description(operation: Operation[Any, Any]) -> str:
    """What a model reads of a tool: without what is said to people at a command line."""
    sentences = re.split(r"(?<=[.:]) ", operation.description)
    said = (each for each in sentences if each and not of_command_line(each))
    return " ".join((operation.summary, *said))


def hints(operation: Operation[Any, Any]) -> dict[str, bool]:
    """What a client may know of a tool before it lets a model call it."""
    return {
        "readOnlyHint": operation.effect is Effect.READ,
        "destructiveHint": operation.effect is Effect.DESTROY,
        "idempotentHint": operation.effect is Effect.READ or operation.idempotent,
        "openWorldHint": False,
    }

"""The tools of a cyberspace, as MCP describes them: one for each operation. Pure."""

from __future__ import annotations

from typing import Any

from kvestigate.operation import Effect, Operation


def tool_name(operation: str) -> str:
    """Many clients take only letters, digits, `_` and `-` in the name of a tool."""
    return operation.replace(".", "_")


def hints(operation: Operation[Any, Any]) -> dict[str, bool]:
    """What a client may know of a tool before it lets a model call it."""
    return {
        "readOnlyHint": operation.effect is Effect.READ,
        "destructiveHint": operation.effect is Effect.DESTROY,
        "idempotentHint": operation.effect is Effect.READ,
        "openWorldHint": False,
    }

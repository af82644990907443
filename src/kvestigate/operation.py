"""What an operation is: the unit that the CLI, the agents' gateway and MCP all project."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any


class Effect(enum.Enum):
    """What running an operation can do to the world; drives confirmation and policy."""

    READ = "read"
    WRITE = "write"
    DESTROY = "destroy"


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing users or agents can ask for."""

    name: str
    """`report.run`, `workspace.create`"""
    summary: str
    input: type
    """The options: a frozen dataclass or Struct whose fields are the parameters."""
    output: type
    """What is answered: a dataclass or Struct, of which agents get the JSON schema."""
    effect: Effect
    handler: Callable[..., Awaitable[Any]]
    """`await handler(context, options)` returns an `output`."""

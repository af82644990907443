"""Running an operation from its page: what reads at once, what writes by plan and confirmation.

A write is shown as a plan first. It is carried out only if the person types the words that the
command line wants as a flag, and only if the plan is still the one that they were shown.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from kvestigate.client.access import Access
from kvestigate.console.forms import Values, input_from
from kvestigate.errors import UsageError
from kvestigate.node_access.reach import DEFAULT
from kvestigate.operation import Context, Effect, Operation
from kvestigate.render.blocks import Block, text
from kvestigate.render.plain import to_text


@dataclass(frozen=True, slots=True)
class Shown:
    """What came of running an operation."""

    blocks: tuple[Block, ...]
    done: bool
    """Whether it was carried out, or only planned."""
    pending: bool = False
    """Whether the plan has anything to do."""
    digest: str = ""
    """Of the plan: what is confirmed is this plan and no other."""
    changed: bool = False
    """Whether the plan is another one than the person confirmed."""


def words_to_type(operation: Operation[Any, Any]) -> str:
    """`i-understand-this-disrupts-workloads`, as the command line has it; empty if none is due."""
    return operation.consequence.flag.removeprefix("--") if operation.consequence else ""


async def read(access: Access, operation: Operation[Any, Any], values: Values, where: str) -> Shown:
    """The result of an operation that reads."""
    if operation.effect is not Effect.READ:
        raise UsageError(f"{operation.name} changes something, and this page only reads")
    given = input_from(operation, values, where)
    result = await operation.run(reading_context(access), given)
    return Shown(tuple(operation.blocks(given, result)), done=True)


async def plan(access: Access, operation: Operation[Any, Any], values: Values, where: str) -> Shown:
    """What the operation would do; nothing is changed."""
    given = input_from(operation, values, where)
    context = reading_context(access)
    if operation.announce is not None:
        blocks: tuple[Block, ...] = (text(operation.announce(context, given)),)
        return Shown(blocks, done=False, pending=True, digest=_digest(blocks))
    if operation.consequence is None:  # it has no plan: it acts as soon as it is asked
        blocks = (text(f"{operation.summary} This happens as soon as you confirm."),)
        return Shown(blocks, done=False, pending=True, digest=_digest(blocks))
    result = await operation.run(context, given)
    blocks = tuple(operation.blocks(given, result))
    return Shown(blocks, False, operation.pending(result), _digest(blocks))


async def act(
    access: Access,
    operation: Operation[Any, Any],
    values: Values,
    where: str,
    *,
    typed: str,
    digest: str,
) -> Shown:
    """Carry it out, if it is confirmed and the plan is still the one with that digest."""
    wanted = words_to_type(operation)
    if typed.strip().removeprefix("--") != wanted:
        raise UsageError(
            f"nothing was changed: the confirmation is {typed.strip()!r}",
            hint=f"type {wanted} to confirm",
        )
    current = await plan(access, operation, values, where)
    if current.digest != digest:
        return Shown(current.blocks, False, current.pending, current.digest, changed=True)
    given = input_from(operation, values, where)
    result = await operation.run(Context(lambda: access, apply=True, via=DEFAULT), given)
    return Shown(tuple(operation.blocks(given, result)), done=True)


def reading_context(access: Access) -> Context:
    """The circumstances in which nothing is changed."""
    return Context(lambda: access, apply=False, via=DEFAULT)


def _digest(blocks: tuple[Block, ...]) -> str:
    return hashlib.sha256(to_text(blocks, wide=True).encode()).hexdigest()

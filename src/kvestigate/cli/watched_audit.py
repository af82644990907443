"""`kvestigate audit --watch`: changes to the terminal, as NDJSON, and to webhooks."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING

import click

from kvestigate.errors import EXIT_OK, KvestigateError

if TYPE_CHECKING:
    from kvestigate.cli.options import GlobalOptions
    from kvestigate.health.audit import Audit
    from kvestigate.health.watching import Change

Tell = Callable[[Sequence["Change"]], Awaitable[None]]


async def watch_findings(
    options: GlobalOptions,
    look: Callable[[], Awaitable[Audit]],
    every: float,
    webhook: str | None,
    slack: str | None,
) -> int:
    """Show changes until the user ends it."""
    from kvestigate.health.watching import watch

    show = _as_json if options.output == "json" else _as_lines
    async with AsyncExitStack() as stack:
        others = _others(stack, webhook, slack)
        changes = await stack.enter_async_context(aclosing(watch(look, every, _warn)))
        async for made in changes:
            show(made)
            for tell in others:
                await tell(made)
    return EXIT_OK


def _as_json(changes: Sequence[Change]) -> None:
    import msgspec

    for change in changes:
        sys.stdout.buffer.write(msgspec.json.encode(change) + b"\n")
    sys.stdout.buffer.flush()


def _as_lines(changes: Sequence[Change]) -> None:
    from kvestigate.health.watching import line

    for change in changes:
        click.echo(line(change))


def _others(stack: AsyncExitStack, webhook: str | None, slack: str | None) -> Sequence[Tell]:
    """Those besides the terminal who are told."""
    import msgspec

    from kvestigate.health.watching import chat_message

    def for_programs(changes: Sequence[Change]) -> bytes:
        return msgspec.json.encode({"changes": changes})

    def for_people(changes: Sequence[Change]) -> bytes:
        return msgspec.json.encode(chat_message(changes))

    given = (("--webhook", webhook, for_programs), ("--slack", slack, for_people))
    return [_sender(stack, option, url, body) for option, url, body in given if url is not None]


def _sender(
    stack: AsyncExitStack, option: str, url: str, body: Callable[[Sequence[Change]], bytes]
) -> Tell:
    """What does not get through is shown, and sent again with the next change."""
    from kvestigate.collect.sinks.interface import Rejected, Unavailable
    from kvestigate.collect.sinks.post import PostSink

    sink = PostSink(url, environ=os.environ, option=option)
    stack.push_async_callback(sink.aclose)
    unsent: list[Change] = []

    async def tell(changes: Sequence[Change]) -> None:
        unsent.extend(changes)
        try:
            await sink.send([body(unsent)])
        except Unavailable as error:
            click.echo(f"warning: {option}: {error.message}; sending it again later", err=True)
        except Rejected as error:
            click.echo(f"warning: {option}: {error.message}", err=True)
            unsent.clear()
        else:
            unsent.clear()

    return tell


def _warn(error: KvestigateError) -> None:
    click.echo(f"warning: {error.message}; asking again", err=True)

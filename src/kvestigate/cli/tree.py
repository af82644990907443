"""Every command of a program, for the reference pages and the guards."""

from __future__ import annotations

from collections.abc import Iterator

import click


def walk(root: click.Command, *, width: int = 96) -> Iterator[click.Context]:
    """A context for each command below `root`, groups before their members.

    `width` is fixed so that what is written down does not depend on anyone's terminal.
    """
    settings = {**root.context_settings, "terminal_width": width}
    yield from _below(root, click.Context(root, info_name=root.name, **settings))


def is_group(context: click.Context) -> bool:
    return isinstance(context.command, click.Group)


def _below(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    if not isinstance(command, click.Group):
        return
    for name in command.list_commands(context):
        member = command.get_command(context, name)
        if member is not None:
            inner = click.Context(member, info_name=name, parent=context)
            yield inner
            yield from _below(member, inner)

"""Options that take several words: `--kinds Deployment Job`, up to the next option."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from kvestigate.cli.command import Command


class ListCommand(Command):
    """A command whose repeatable options may be given once with several values.

    For commands without arguments: a word after such an option is the option's.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        repeatable = {
            name
            for parameter in self.params
            if isinstance(parameter, click.Option) and parameter.multiple
            for name in parameter.opts
        }
        return super().parse_args(ctx, list(_repeated(args, repeatable)))


def _repeated(args: Sequence[str], repeatable: set[str]) -> Iterator[str]:
    """`--kinds A B` as `--kinds A --kinds B`."""
    option, given = "", 0
    for word in args:
        if word.startswith("-"):
            option, given = (word if word in repeatable else ""), 0
        elif option and given:
            yield option
            given += 1
        else:
            given += 1
        yield word

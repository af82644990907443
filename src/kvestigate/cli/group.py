"""Groups of commands: they load their members when they are called.

A mistyped command is answered with the one that was probably meant. An operation of the catalog
that no file here has a command for gets one that is derived from its declaration.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from kvestigate import catalog
from kvestigate.cli.command import (
    Command,
    add_global_parameters,
    mistakes_of,
    run_of,
    shown_examples,
    write_examples,
    write_global_note,
    write_options,
)
from kvestigate.cli.commands import DERIVED, HEADINGS, OTHERS, Entry
from kvestigate.errors import UsageError, nearest

if TYPE_CHECKING:
    from kvestigate.cli.run import Run

P = ParamSpec("P")
R = TypeVar("R")


class Group(click.Group):
    """A group whose members are decorated functions in one file."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        add_global_parameters(self)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with mistakes_of(ctx):
            return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)
        write_global_note(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Click cuts what does not fit on a line; here it goes on in the next one.
        members = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, member.get_short_help_str(limit=500))
            for name, member in members
            if member is not None
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            raise _no_such_command(self, ctx, name)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        written = super().list_commands(ctx)
        return sorted({*written, *self._derivable(written)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        written = super().get_command(ctx, cmd_name)
        if written is not None or cmd_name not in self._derivable(()):
            return written
        from kvestigate.cli.derived import command_of

        return command_of(catalog.operation(self._operations()[cmd_name]))

    def _derivable(self, written: Sequence[str]) -> list[str]:
        """Words of the group's operations in the catalog that no file here has a command for."""
        return [word for word in self._operations() if word not in written]

    def _operations(self) -> dict[str, str]:
        """The group's commands and their operations: `put-text` is `workspace.put_text`."""
        parts = ((name, *name.partition(".")) for name in catalog.CATALOG)
        return {
            word.replace("_", "-"): name
            for name, group, _, word in parts
            if word and group == self.name
        }


class RunnableGroup(Group):
    """A group that is a command, too: `audit` beside `audit diff`."""

    def __init__(
        self, *args: Any, examples: Sequence[str] = (), runs: str = "", **kwargs: Any
    ) -> None:
        super().__init__(*args, invoke_without_command=True, **kwargs)
        self.examples = tuple(examples)
        self.runs = runs

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(shown_examples(ctx), formatter)


class LazyGroup(Group):
    """A program: members come from a table and are imported when they are needed."""

    def __init__(
        self, *args: Any, entries: Sequence[Entry], derives: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.entries = {entry.name: entry for entry in entries}
        self.derives = derives
        """Whether it also has the operations of the catalog that the table does not mention."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.entries, *self._derivable(())]

    def _derivable(self, written: Sequence[str]) -> list[str]:
        if not self.derives:
            return []
        words = (name.partition(".")[0] for name in catalog.CATALOG)
        return [word for word in dict.fromkeys(words) if word not in self.entries]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        if entry is None:
            return self._derived(cmd_name, OTHERS) if cmd_name in self._derivable(()) else None
        if entry.target == DERIVED:
            return self._derived(cmd_name, entry.summary)
        module, _, attribute = entry.target.partition(":")
        command: click.Command = getattr(
            importlib.import_module(f"kvestigate.cli.{module}"), attribute
        )
        return command

    def _derived(self, word: str, summary: str) -> click.Command:
        if word not in catalog.CATALOG:
            return Group(word, help=summary)
        from kvestigate.cli.derived import command_of

        return command_of(catalog.operation(word))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading in HEADINGS:
            rows = [(e.name, e.summary) for e in self.entries.values() if e.heading == heading]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
        if others := self._derivable(()):
            members = ((word, self.get_command(ctx, word)) for word in others)
            rows = [
                (word, member.get_short_help_str(limit=500)) for word, member in members if member
            ]
            with formatter.section(OTHERS):
                formatter.write_dl(rows)


def group(name: str) -> Callable[[Callable[[], None]], Group]:
    """A group of commands; the function only carries the docstring that `--help` shows."""
    return click.group(name, cls=Group)


def runnable_group(
    operation: str, *, examples: Sequence[str]
) -> Callable[[Callable[Concatenate[Run, P], R]], RunnableGroup]:
    """Like `operation_command`, for one with members: it runs when none of them is called."""

    def build(function: Callable[Concatenate[Run, P], R]) -> RunnableGroup:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R | None:
            if click.get_current_context().invoked_subcommand is not None:
                return None
            return function(run_of(operation, kwargs), *args, **kwargs)

        made = click.group(operation, cls=RunnableGroup, examples=examples, runs=operation)(call)
        assert isinstance(made, RunnableGroup)
        return made

    return build


def _no_such_command(owner: click.Group, ctx: click.Context, name: str) -> UsageError:
    near = nearest(name, owner.list_commands(ctx), cutoff=0.65)
    kind = "option" if name.startswith("-") else "command"
    way_out = f"`{ctx.command_path} --help` lists the commands"
    hint = f"did you mean `{ctx.command_path} {near}`? {way_out}" if near else way_out
    return UsageError(f"no such {kind} {name!r} in `{ctx.command_path}`", hint=hint)

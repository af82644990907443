"""Click groups and commands the way this project has them.

Groups load their members when they are called. Every group and command takes the global
options, so `kvestigate -n web pods` and `kvestigate pods -n web` are the same. A mistyped
command is answered with the one that was probably meant.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from kvestigate.cli.commands import HEADINGS, Entry
from kvestigate.cli.options import GLOBAL_NAMES, GlobalOptions, collected, global_parameters
from kvestigate.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")


class Command(click.Command):
    """A command: its own options in full, the global ones in a line, then the examples."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        _add_global_parameters(self)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_options(self, ctx, formatter)
        _write_global_note(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(self.examples, formatter)


class Group(click.Group):
    """A group whose members are decorated functions in one file."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _add_global_parameters(self)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)
        _write_global_note(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Click cuts what does not fit on a line; here it goes on in the next one.
        members = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, it.get_short_help_str(limit=500)) for name, it in members if it is not None]
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


class RunnableGroup(Group):
    """A group that is a command, too: `audit` beside `audit diff`."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, invoke_without_command=True, **kwargs)
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(self.examples, formatter)


class LazyGroup(Group):
    """A program: members come from a table and are imported when they are needed."""

    def __init__(self, *args: Any, entries: Sequence[Entry], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.entries = {entry.name: entry for entry in entries}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.target.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading in HEADINGS:
            rows = [(e.name, e.summary) for e in self.entries.values() if e.heading == heading]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def command(
    name: str,
    *,
    examples: Sequence[str],
    into: Group | None = None,
    cls: type[Command] = Command,
) -> Callable[[Callable[Concatenate[GlobalOptions, P], R]], Command]:
    """A command whose function is given the global options first, then its own parameters.

    The function may be a coroutine function: `main` runs what it returns.
    """

    def build(function: Callable[Concatenate[GlobalOptions, P], R]) -> Command:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return function(collected(click.get_current_context().obj), *args, **kwargs)

        made = click.command(name, cls=cls, examples=examples)(call)
        if into is not None:
            into.add_command(made)
        return made

    return build


def group(name: str) -> Callable[[Callable[[], None]], Group]:
    """A group of commands; the function only carries the docstring that `--help` shows."""
    return click.group(name, cls=Group)


def runnable_group(
    name: str, *, examples: Sequence[str]
) -> Callable[[Callable[Concatenate[GlobalOptions, P], R]], RunnableGroup]:
    """Like `command`, for one that has members: the function runs when none of them is called."""

    def build(function: Callable[Concatenate[GlobalOptions, P], R]) -> RunnableGroup:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R | None:
            context = click.get_current_context()
            if context.invoked_subcommand is not None:
                return None
            return function(collected(context.obj), *args, **kwargs)

        return click.group(name, cls=RunnableGroup, examples=examples)(call)

    return build


def _add_global_parameters(owner: click.Command) -> None:
    """An option of the command's own takes the place of a global one of the same name."""
    own = {name for parameter in owner.params for name in parameter.opts}
    owner.params.extend(it for it in global_parameters() if not own.intersection(it.opts))


def _no_such_command(owner: click.Group, ctx: click.Context, name: str) -> UsageError:
    import difflib

    near = difflib.get_close_matches(name, owner.list_commands(ctx), n=1)
    kind = "option" if name.startswith("-") else "command"
    way_out = f"`{ctx.command_path} --help` lists the commands"
    hint = f"did you mean `{ctx.command_path} {near[0]}`? {way_out}" if near else way_out
    return UsageError(f"no such {kind} {name!r} in `{ctx.command_path}`", hint=hint)


def _write_options(
    owner: click.Command, ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    records = [
        record
        for parameter in owner.get_params(ctx)
        if isinstance(parameter, click.Option)
        and parameter.name not in GLOBAL_NAMES
        and (record := parameter.get_help_record(ctx)) is not None
    ]
    with formatter.section("Options"):
        formatter.write_dl(records)


def _write_global_note(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    program = ctx.find_root().info_name
    formatter.write_paragraph()
    formatter.write_text(f"Global options (-n, -o, --context, ...): see `{program} --help`.")


def _write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            for example in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")

"""Commands the way this project has them: the global options, examples, and an operation to run.

Every command takes the global options, so `kvestigate -n web pods` and `kvestigate pods -n web` are
the same.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from kvestigate import catalog
from kvestigate.cli import confirm
from kvestigate.cli.options import GLOBAL_NAMES, GlobalOptions, collected, global_parameters

if TYPE_CHECKING:
    from kvestigate.cli.run import Run
    from kvestigate.operation import Operation

P = ParamSpec("P")
_NEGATIVE = re.compile(r"-[0-9]+(?:\.[0-9]+)?")
R = TypeVar("R")


@contextmanager
def mistakes_of(ctx: click.Context) -> Iterator[None]:
    """A mistake in here is one of this command. Click's parser does not say so of all of them."""
    try:
        yield
    except click.UsageError as error:
        error.ctx = error.ctx or ctx
        raise


class Command(click.Command):
    """A command: its own options in full, the global ones in a line, then the examples.

    One that runs an operation has the confirmation flags that the operation declares.
    """

    def __init__(
        self,
        *args: Any,
        examples: Sequence[str] = (),
        runs: str | Operation[Any, Any] = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self.runs = runs
        """The operation, or its name in the catalog; empty for the few commands that run none."""
        add_global_parameters(self)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # To Click -1 is an option, and unknown. It is a number, and refused as one if it is wrong.
        if any(_NEGATIVE.fullmatch(word) for word in args):
            ctx.ignore_unknown_options = True
        with mistakes_of(ctx):
            return super().parse_args(ctx, args)

    @cached_property
    def _flags(self) -> Sequence[click.Option]:
        operation = operation_of(self.runs) if self.runs else None
        if operation is None or operation.consequence is None:
            return ()
        return confirm.flags(operation.consequence)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        found = super().get_params(ctx)
        found[len(self.params) : len(self.params)] = self._flags  # before --help
        return found

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(self, ctx, formatter)
        write_global_note(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(shown_examples(ctx), formatter)


def command(
    name: str,
    *,
    examples: Sequence[str],
    into: click.Group | None = None,
    cls: type[Command] = Command,
) -> Callable[[Callable[Concatenate[GlobalOptions, P], R]], Command]:
    """A command whose function is given the global options first, then its own parameters.

    The function may be a coroutine function: `main` runs what it returns.
    """

    def build(function: Callable[Concatenate[GlobalOptions, P], R]) -> Command:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return function(collected(click.get_current_context().obj), *args, **kwargs)

        return _member(click.command(name, cls=cls, examples=examples)(call), into)

    return build


def operation_command(
    operation: str | Operation[Any, Any],
    *,
    examples: Sequence[str],
    into: click.Group | None = None,
) -> Callable[[Callable[Concatenate[Run, P], R]], Command]:
    """A command that runs an operation: its function is given the `Run` first.

    It is called like the last word of the operation. With a name, the operation is looked up in
    the catalog when the command is called or described.
    """

    def build(function: Callable[Concatenate[Run, P], R]) -> Command:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return function(run_of(operation, kwargs), *args, **kwargs)

        name = operation if isinstance(operation, str) else operation.name
        word = name.rpartition(".")[2]
        build_command = click.command(word, cls=Command, examples=examples, runs=operation)
        return _member(build_command(call), into)

    return build


def operation_of(runs: str | Operation[Any, Any]) -> Operation[Any, Any]:
    """The operation, or the one of that name in the catalog."""
    return catalog.operation(runs) if isinstance(runs, str) else runs


def run_of(runs: str | Operation[Any, Any], parameters: dict[str, Any]) -> Run:
    """The call of an operation; the confirmation flags are taken out of `parameters`."""
    from kvestigate.cli.run import Run

    context = click.get_current_context()
    operation = operation_of(runs)
    given = confirm.confirmation(operation, parameters)
    return Run(operation, collected(context.obj), given)


def _member(made: Command, into: click.Group | None) -> Command:
    if into is not None:
        into.add_command(made)
    return made


def add_global_parameters(owner: click.Command) -> None:
    """An option of the command's own takes the place of a global one of the same name."""
    own = {name for parameter in owner.params for name in parameter.opts}
    owner.params.extend(
        parameter for parameter in global_parameters() if not own.intersection(parameter.opts)
    )


def write_options(owner: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    records = [
        record
        for parameter in owner.get_params(ctx)
        if isinstance(parameter, click.Option)
        and parameter.name not in GLOBAL_NAMES
        and (record := parameter.get_help_record(ctx)) is not None
    ]
    with formatter.section("Options"):
        formatter.write_dl(records)


def write_global_note(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    program = ctx.find_root().info_name
    formatter.write_paragraph()
    formatter.write_text(f"Global options (-n, -o, --context, ...): see `{program} --help`.")


def shown_examples(ctx: click.Context) -> Sequence[str]:
    """The examples of a command under the name that it has here: `k8s-cli serve`."""
    examples: Sequence[str] = getattr(ctx.command, "examples", ())
    path = re.compile(rf"kvestigate (?:[\w-]+ )*?{re.escape(ctx.info_name or '')}(?!\S)")
    return [path.sub(ctx.command_path, example, count=1) for example in examples]


def write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            for example in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")

"""The gate before every write: the plan is always shown, the change only when it is meant.

A command whose operation has a consequence takes `--apply` and one flag that names the
consequence; both derive from the operation. Without `--apply` the plan is a preview: one line says
how to apply it, and the exit code is 0. `--apply` without the flag is a mistake, exit code 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kvestigate.errors import EXIT_OK, EXIT_USAGE, UsageError

if TYPE_CHECKING:
    from kvestigate.operation import Consequence, Operation

APPLY, UNDERSTOOD, DRY_RUN, EXIT_CODE = "apply", "understood", "dry_run", "exit_code"
"""The names under which click hands the flags over."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Which of the flags of a write command were given."""

    consequence: Consequence
    apply: bool
    understood: bool
    dry_run: bool = False
    exit_code: bool = False
    """A preview with something to do ends with exit code 2, for scripts."""
    needs_apply: bool = True
    """False: the flag of the consequence is enough."""

    @property
    def given(self) -> bool:
        """Whether the user wants the plan carried out, and has said that they understand it."""
        return not self.missing and not self.dry_run

    @property
    def missing(self) -> list[str]:
        flags = []
        if self.needs_apply and not self.apply:
            flags.append("--apply")
        if not self.understood:
            flags.append(self.consequence.flag)
        return flags

    def conclude(self) -> None:
        """Pass if the plan was carried out; else end the command and name the missing flags."""
        if self.given:
            return
        if self.apply and not self.dry_run:
            raise UsageError(
                f"nothing was changed: this {self.consequence.words}, and --apply alone does not "
                "confirm that",
                hint=f"if the plan above is what you want, add {' '.join(self.missing)}",
            )
        if not self.dry_run:
            click.echo(
                f"nothing was changed; to apply this plan, add {' '.join(self.missing)}", err=True
            )
        raise click.exceptions.Exit(EXIT_USAGE if self.exit_code else EXIT_OK)


def flags(consequence: Consequence) -> Sequence[click.Option]:
    """The options of a command that has this consequence."""
    return (
        click.Option(
            ["--apply", APPLY], is_flag=True, help="Do it, instead of only showing the plan."
        ),
        click.Option(
            [consequence.flag, UNDERSTOOD], is_flag=True, help="Required together with --apply."
        ),
        click.Option(["--dry-run", DRY_RUN], is_flag=True, help="Only show the plan."),
        click.Option(
            ["--exit-code", EXIT_CODE],
            is_flag=True,
            help="Exit with 2 if the plan has something to do, and was not applied.",
        ),
    )


def confirmation(operation: Operation[Any, Any], parameters: dict[str, Any]) -> Confirmation | None:
    """What the flags of one command line come to; they are taken out of its parameters."""
    if operation.consequence is None:
        return None
    given = {name: parameters.pop(name) for name in (APPLY, UNDERSTOOD, DRY_RUN, EXIT_CODE)}
    if given[DRY_RUN] and given[APPLY]:
        raise UsageError(
            "--dry-run and --apply contradict each other", hint="leave out one of them"
        )
    return Confirmation(operation.consequence, **given, needs_apply=operation.needs_apply)

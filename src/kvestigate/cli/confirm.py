"""The gate before every write: the plan is always shown, the change only when it is meant.

A command that writes takes `--apply` and one flag that names the consequence. It prints its
plan, calls `Confirmation.require`, and only then acts. `--dry-run` says that the plan is all
that is wanted, and ends well.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from kvestigate.errors import EXIT_OK, UsageError


class Consequence(enum.Enum):
    """What the user has to say they understand."""

    MODIFIES_CLUSTER = "modifies-cluster"
    """API objects change."""
    MODIFIES_HOSTS = "modifies-hosts"
    """Workspaces on the nodes' own file systems change."""
    WRITES_TO_HOSTS = "writes-to-hosts"
    """Files are pushed to many nodes or pods."""
    DISRUPTS_WORKLOADS = "disrupts-workloads"
    """Running pods are evicted."""

    @property
    def flag(self) -> str:
        return f"--i-understand-this-{self.value}"

    @property
    def words(self) -> str:
        """`modifies the cluster`, `writes to hosts`"""
        return self.value.replace("-", " ").replace("cluster", "the cluster")


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Which of the flags of a write command were given."""

    consequence: Consequence
    apply: bool
    understood: bool
    dry_run: bool = False

    def require(self) -> None:
        """Pass if both flags are there; otherwise name those that are missing."""
        if self.dry_run:
            raise click.exceptions.Exit(EXIT_OK)
        missing = [
            flag
            for flag, given in (
                ("--apply", self.apply),
                (self.consequence.flag, self.understood),
            )
            if not given
        ]
        if missing:
            flags = " ".join(missing)
            raise UsageError(
                f"nothing was changed: this {self.consequence.words}, "
                f"and {flags} {'was' if len(missing) == 1 else 'were'} not given",
                hint=f"if the plan above is what you want, add {flags}",
            )


def writes(consequence: Consequence) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the flags; the command is given one `confirmation` instead of them."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @click.option("--apply", is_flag=True, help="Do it, instead of only showing the plan.")
        @click.option(
            consequence.flag, "understood", is_flag=True, help="Required together with --apply."
        )
        @click.option("--dry-run", is_flag=True, help="Only show the plan, and exit with 0.")
        @functools.wraps(function)
        def call(*args: Any, apply: bool, understood: bool, dry_run: bool, **kwargs: Any) -> Any:
            if dry_run and apply:
                raise UsageError(
                    "--dry-run and --apply contradict each other", hint="leave out one of them"
                )
            confirmation = Confirmation(
                consequence, apply=apply, understood=understood and not dry_run, dry_run=dry_run
            )
            return function(*args, confirmation=confirmation, **kwargs)

        return call

    return decorate

"""`kvestigate auth`: as whom tasks and volumes are made."""

from __future__ import annotations

import os

import click

from kvestigate.cli.group import command, group
from kvestigate.cli.options import GlobalOptions


@group("auth")
def auth() -> None:
    """Say who you are to the job launcher."""


@command("login", into=auth, examples=("kvestigate auth login user@example.com",))
@click.argument("username")
def login(options: GlobalOptions, username: str) -> None:
    """Be USERNAME from now on: its tasks and volumes are yours."""
    from kvestigate.jobs.login import log_in

    user = log_in(os.environ, username)
    click.echo(f"logged in as {user.name}")


@command("whoami", into=auth, examples=("kvestigate auth whoami",))
def whoami(options: GlobalOptions) -> None:
    """Show who is logged in."""
    from kvestigate.jobs.login import logged_in

    click.echo(logged_in(os.environ).name)

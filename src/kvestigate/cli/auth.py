"""`kvestigate auth`: the user who owns new tasks and volumes."""

from __future__ import annotations

import os
import sys

import click

from kvestigate.cli.command import command
from kvestigate.cli.group import group
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.errors import UsageError
from kvestigate.jobs.remote.login import API_URL


@group("auth")
def auth() -> None:
    """Log in to the job launcher."""


@command(
    "login",
    into=auth,
    examples=(
        "kvestigate auth login user@example.com",
        "kvestigate auth login --token < token.txt",
    ),
)
@click.argument("username", required=False)
@click.option("--token", "with_token", is_flag=True, help="Ask for a bearer token of the server.")
async def login(options: GlobalOptions, username: str | None, with_token: bool) -> None:
    """Log in as USERNAME, the owner of the tasks and volumes that you create.

    With --token the token is read from standard input, checked with the server of
    $K8S_CLI_API_URL, and kept in a file that only you can read.
    """
    from kvestigate.jobs.remote.login import log_in

    token = _read_token() if with_token else ""
    if token and os.environ.get(API_URL):
        known = await _known(os.environ[API_URL], token)
        if username not in (None, known):
            raise UsageError(f"the token is {known}'s, not {username}'s", hint="omit USERNAME")
        username = known
    if username is None:
        raise UsageError("no user name is given", hint="k8s-cli auth login NAME")
    _say(options, log_in(os.environ, username, token).name, "logged in as {}")


@command("logout", into=auth, examples=("kvestigate auth logout",))
def logout(options: GlobalOptions) -> None:
    """Log out, and delete the stored token."""
    from kvestigate.jobs.remote.login import log_out

    log_out(os.environ)
    click.echo("logged out")


@command("whoami", into=auth, examples=("kvestigate auth whoami",))
async def whoami(options: GlobalOptions) -> None:
    """Show the logged-in user; with a token, the user that the server knows by it.

    Without a server no login is needed: the default is your user name on this machine.
    """
    from kvestigate.jobs.remote.login import logged_in, owner, stored_token

    url, token = os.environ.get(API_URL), stored_token(os.environ)
    if url and token:
        _say(options, await _known(url, token))
    else:
        _say(options, (logged_in if url else owner)(os.environ).name)


@command(
    "token",
    into=auth,
    examples=(
        "kvestigate auth token user@example.com",
        "kvestigate auth token root@example.com --role admin",
    ),
)
@click.argument("username")
@click.option(
    "--role",
    type=click.Choice(["user", "admin"]),
    default="user",
    show_default=True,
    help="Role of the user; admins may use --all-users.",
)
def token(options: GlobalOptions, username: str, role: str) -> None:
    """Make a bearer token for USERNAME, and the entry for the configuration of a server.

    The token is printed once, to standard error; the entry, which holds its SHA-256, to standard
    output, for the list `tokens` of the file that `serve --config` reads.
    """
    from kvestigate.jobs.server.authn import new_token, token_digest
    from kvestigate.jobs.users import User
    from kvestigate.render.encode import to_yaml

    made = new_token()
    entry = {"user": User(username).name, "role": role, "sha256": token_digest(made)}
    click.echo(made, err=True)
    sys.stdout.write(to_yaml([entry]))


def _say(options: GlobalOptions, username: str, words: str = "{}") -> None:
    from kvestigate.render.blocks import text

    emit(
        options, {"username": username}, lambda identity: [text(words.format(identity["username"]))]
    )


def _read_token() -> str:
    if sys.stdin.isatty():
        return str(click.prompt("token", hide_input=True, err=True)).strip()
    given = sys.stdin.readline().strip()
    if not given:
        raise UsageError("--token: standard input is empty", hint="auth login --token < FILE")
    return given


async def _known(url: str, token: str) -> str:
    from kvestigate.jobs.remote.launcher import Remote

    async with Remote(url, None, token) as remote:
        return (await remote.whoami()).username

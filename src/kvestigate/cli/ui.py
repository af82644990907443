"""`kvestigate ui`: the console in a browser."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import click

from kvestigate.cli.command import command
from kvestigate.cli.options import GlobalOptions


@command(
    "ui",
    examples=(
        "kvestigate ui",
        "kvestigate ui --context prod --no-browser",
        "kvestigate ui --listen 127.0.0.1:8080 --allow-writes",
    ),
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:0",
    show_default=True,
    help="Address to listen on, of this machine only; port 0 is any free port.",
)
@click.option("--no-browser", is_flag=True, help="Only print the URL; do not open a browser.")
@click.option(
    "--allow-writes",
    is_flag=True,
    help="Offer actions, too; each shows its plan and has to be confirmed by typing.",
)
async def ui(options: GlobalOptions, listen: str, no_browser: bool, allow_writes: bool) -> None:
    """Show the clusters of your kubeconfig in a browser, live.

    Prints a URL with a token that signs in one browser. The console acts with your own rights, and
    only reads unless --allow-writes is given. Ctrl-C stops it.
    """
    await show(options, listen, browser=not no_browser, allow_writes=allow_writes)


async def show(
    options: GlobalOptions, listen: str = "127.0.0.1:0", *, browser: bool, allow_writes: bool
) -> None:
    """Serve the console until the user stops it."""
    from msgspec.structs import replace

    from kvestigate.aio.loops import told_to_stop
    from kvestigate.cli.cluster import access_of, resolved
    from kvestigate.client.choice import load_config
    from kvestigate.console.serving import bound, serve
    from kvestigate.files import home

    access = access_of(options)  # says now, and not in the browser, that there is no cluster
    wanted = options.access()
    config, _ = load_config(wanted, os.environ, home())
    if access.files and access.context not in config.contexts:  # a cluster of this machine
        wanted = replace(wanted, kubeconfig=str(access.files[0]))
        config, _ = load_config(wanted, os.environ, home())
    names = sorted(config.contexts) or [access.context]
    announce = _opening() if browser else _print
    with bound(listen) as listening:
        await serve(
            listening, names, access.context, wanted, resolved, announce, told_to_stop(),
            allow_writes=allow_writes,
        )  # fmt: skip


def _print(url: str) -> None:
    click.echo(f"open in a browser: {url}")
    sys.stdout.flush()


def _opening() -> Callable[[str], None]:
    """Opens the first address; those for further browsers are printed."""
    opened: list[str] = []

    def announce(url: str) -> None:
        if not opened:
            click.launch(url)
        opened.append(url)
        _print(url)

    return announce

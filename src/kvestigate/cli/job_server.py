"""`kvestigate jobs serve`, which is `k8s-cli serve` too: the launcher's server."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from kvestigate.cli.command import command
from kvestigate.cli.files import read_whole
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.parameters import whole_number
from kvestigate.errors import UsageError

if TYPE_CHECKING:
    from kvestigate.jobs.server.settings import Settings

API_PORT = "K8S_CLI_API_PORT"
_HIGHEST_PORT = 65535


@command(
    "serve",
    examples=(
        "kvestigate jobs serve",
        "kvestigate jobs serve --config users.yaml --host 0.0.0.0",
    ),
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; only loopback, unless --config has tokens or oidc.",
)
@click.option(
    "--port",
    type=whole_number(0, _HIGHEST_PORT),
    help=f"Port to listen on; ${API_PORT}, else 8000.",
)
@click.option(
    "--config",
    metavar="FILE",
    help="YAML file with tokens or oidc, admins and quotas of the users, and hosts.",
)
async def serve(options: GlobalOptions, host: str, port: int | None, config: str | None) -> None:
    """Serve tasks and volumes over HTTP.

    Without --config the server listens on loopback only and trusts the header X-User. With tokens
    or an OpenID Connect issuer in --config users have to authenticate. All state is in the cluster.
    """
    from kvestigate.aio.loops import told_to_stop
    from kvestigate.cli.cluster import access_of
    from kvestigate.client.connect import connect
    from kvestigate.jobs.remote.login import API_URL
    from kvestigate.jobs.server.serve import bound, serving

    settings = _settings(config)
    stopped = told_to_stop()
    with bound(host, _port() if port is None else port, settings) as listening:
        async with connect(access_of(options)) as api, serving(api, listening, settings) as url:
            click.echo(f"serving tasks and volumes at {url}")
            click.echo(f"next: export {API_URL}={url}")
            sys.stdout.flush()
            await stopped.wait()


def _settings(file: str | None) -> Settings | None:
    from kvestigate.jobs.server.settings import read_settings
    from kvestigate.kube.documents import one_document

    if file is None:
        return None
    document = one_document(read_whole(file), file, "configuration")
    with document.mistakes():
        return read_settings(document.value)


def _port() -> int:
    text = os.environ.get(API_PORT) or "8000"
    if not text.isdecimal() or int(text) > _HIGHEST_PORT:
        raise UsageError(f"{API_PORT}: {text!r} is not a port", hint=f"{API_PORT}=8000")
    return int(text)

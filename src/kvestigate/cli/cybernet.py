"""`kvestigate cybernet`: a part of the cluster for agents, and nothing beyond it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kvestigate.cli.cluster import access_of
from kvestigate.cli.command import command
from kvestigate.cli.group import group
from kvestigate.cli.node_access import through_daemon_set
from kvestigate.cli.options import GlobalOptions, format_option
from kvestigate.cli.output import emit
from kvestigate.errors import InputError, UsageError

if TYPE_CHECKING:
    from kvestigate.cybernet.loading import Loaded
    from kvestigate.cybernet.spec import HttpListen
    from kvestigate.node_access.model import NodeAccess

_TOKEN = "KVESTIGATE_CYBERNET_TOKEN"
_TEMPLATES = ("distributed-cpu", "research-agents", "observability", "blank")


@group("cybernet")
def cybernet() -> None:
    """Offer agents a part of the cluster: allowed, counted and recorded."""


@command(
    "init",
    into=cybernet,
    examples=(
        "kvestigate cybernet init --name research-pool --template distributed-cpu",
        "kvestigate cybernet init --name watchers --template observability --output watchers.yaml",
    ),
)
@click.option("--name", required=True, help="Of the cyberspace.")
@click.option(
    "--template",
    type=click.Choice(_TEMPLATES),
    default="blank",
    show_default=True,
    help="What to start from.",
)
@click.option(
    "--listen",
    default="127.0.0.1:8765",
    show_default=True,
    metavar="HOST:PORT",
    help="Where agents will reach it.",
)
@click.option(
    "--output",
    "target",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write; NAME.yaml when not given.",
)
@click.option("--identity", default="", help="Whose token it is; NAME-agent when not given.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@format_option
def init(
    options: GlobalOptions,
    name: str,
    template: str,
    listen: str,
    target: Path | None,
    identity: str,
    force: bool,
) -> None:
    """Write the configuration of a new cyberspace, and show its token this once."""
    from kvestigate.cybernet.rendering import Initialised, initialised_blocks
    from kvestigate.cybernet.spec import listen_address, read_cyberspace
    from kvestigate.cybernet.templates import TEMPLATES, cyberspace
    from kvestigate.cybernet.tokens import digest, new_token
    from kvestigate.render.encode import to_yaml

    path = target or Path(f"{name}.yaml")
    chosen = next(known for known in TEMPLATES if known.name == template)
    address = listen_address(listen, "--listen")
    token = new_token()
    who = identity or f"{name}-agent"
    audit = path.resolve().parent / f"{name}.audit.jsonl"
    document = cyberspace(chosen, name, listen, who, digest(token), str(audit))
    read_cyberspace(document)  # names may not be names: better said now than by `serve`
    _write_private(path, to_yaml(document), force=force)
    made = Initialised(
        config=str(path),
        identity=who,
        token=token,
        sha256=digest(token),
        next=(
            f"kvestigate cybernet serve --config {path}",
            f"kvestigate cybernet emit-helper http://localhost:{address.port or 'PORT'} "
            "--output agent_helper.py",
        ),
    )
    emit(options, made, initialised_blocks)
    _warn(address)


def _warn(listen: HttpListen) -> None:
    """Whoever serves plain HTTP to a network should know that they do."""
    if listen.readable_by_others:
        click.echo(
            f"warning: {listen.host} is reached over a network, and without TLS tokens and files "
            "can be read there\n"
            "hint: give serve --tls-cert and --tls-key, or put a proxy with TLS before 127.0.0.1",
            err=True,
        )


def _write_private(path: Path, content: str, *, force: bool) -> None:
    from kvestigate.files import replace_file

    if path.exists() and not force:
        raise InputError(
            "is there already, and its token would be lost",
            where=str(path),
            hint="choose another --output, or replace it with --force",
        )
    try:
        replace_file(path, content.encode(), mode=0o600)
    except OSError as error:
        raise InputError(f"cannot write the file: {error.strerror}", where=str(path)) from error


config_option = click.option(
    "--config", required=True, metavar="FILE", help="The cyberspace, as `init` writes it."
)


_ca_option = click.option(
    "--ca-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Who signed the server's certificate, in PEM; the system's CAs when not given.",
)


def loaded_from(config: str) -> Loaded:
    """The cyberspace of a file."""
    from kvestigate.catalog import operations
    from kvestigate.cybernet.loading import load_cyberspace

    return load_cyberspace(config, operations())


@command(
    "serve", into=cybernet, examples=("kvestigate cybernet serve --config research-pool.yaml",)
)
@config_option
@click.option("--tls-cert", metavar="FILE", help="The server's certificate chain, in PEM.")
@click.option("--tls-key", metavar="FILE", help="The key of that certificate, in PEM.")
@through_daemon_set
async def serve(
    options: GlobalOptions, config: str, tls_cert: str | None, tls_key: str | None, via: NodeAccess
) -> None:
    """Serve a cyberspace over HTTP until it is stopped.

    With a certificate and its key, from the options or listen.http.tls, it is HTTPS.
    """
    from kvestigate.aio.loops import told_to_stop
    from kvestigate.cybernet.serving import serve_http

    loaded = _with_tls(loaded_from(config), tls_cert, tls_key)
    stop = told_to_stop()

    def announce(url: str) -> None:
        space = loaded.space
        click.echo(f"serving cyberspace {space.metadata.name} at {url}")
        click.echo(f"{len(loaded.operations)} operations, recorded in {space.audit.path}")
        sys.stdout.flush()
        if space.listen.http is not None:
            _warn(space.listen.http)

    await serve_http(loaded, access_of(options), stop, announce, via)


def _with_tls(loaded: Loaded, cert: str | None, key: str | None) -> Loaded:
    """What the options say counts more than what the file says."""
    from dataclasses import replace

    from kvestigate.cybernet.spec import TlsFiles

    listen = loaded.space.listen
    if (cert is None) != (key is None):
        missing = "--tls-key" if key is None else "--tls-cert"
        raise UsageError(
            f"a certificate and its key belong together, and {missing} was not given",
            hint="give both --tls-cert and --tls-key",
        )
    if cert is None or key is None or listen.http is None:
        return loaded
    http = replace(listen.http, tls=TlsFiles(cert, key))
    return replace(loaded, space=replace(loaded.space, listen=replace(listen, http=http)))


@command(
    "mcp-server",
    into=cybernet,
    examples=(
        "kvestigate cybernet mcp-server --config research-pool.yaml",
        "kvestigate cybernet mcp-server --config research-pool.yaml --identity research-agent-1",
    ),
)
@config_option
@click.option(
    "--identity", default="", help="In whose name; the only one of the file when not given."
)
@through_daemon_set
async def mcp_server(options: GlobalOptions, config: str, identity: str, via: NodeAccess) -> None:
    """Serve a cyberspace to an MCP client over standard input and output."""
    from kvestigate.cli.standard_input import read_pieces
    from kvestigate.cybernet.serving import identity_for_mcp, serve_mcp

    loaded = loaded_from(config)
    who = identity_for_mcp(loaded, identity)

    def write(line: bytes) -> None:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()

    pieces = read_pieces(sys.stdin.fileno())
    await serve_mcp(loaded, access_of(options), who, pieces, write, via)


@command(
    "emit-helper",
    into=cybernet,
    examples=("kvestigate cybernet emit-helper http://localhost:8765 --output agent_helper.py",),
)
@click.argument("url")
@click.option(
    "--output",
    "target",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write; standard output when not given.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@_ca_option
def emit_helper(
    options: GlobalOptions, url: str, target: Path | None, force: bool, ca_file: Path | None
) -> None:
    """Write a Python module for the agents of the cyberspace at URL.

    It has a function for each operation, and new_job() where jobs are possible. It stands alone:
    hand it over together with the token.
    """
    from kvestigate.cli.files import write_whole
    from kvestigate.cybernet.agent_module import agent_module

    ca = _authorities(ca_file)
    source = agent_module(url.rstrip("/"), _info(url, ca), ca)
    if target is None:
        click.echo(source, nl=False)
        return
    if target.exists() and not force:
        raise InputError("is there already", where=str(target), hint="replace it with --force")
    write_whole(target, source.encode())
    click.echo(f"wrote {target}", err=True)
    click.echo(f"next: hand it to the agent, with its token in {_TOKEN}", err=True)


@command(
    "status",
    into=cybernet,
    examples=(
        "kvestigate cybernet status http://localhost:8765",
        "kvestigate cybernet status --config research-pool.yaml",
    ),
)
@click.argument("url", required=False)
@click.option(
    "--config",
    metavar="FILE",
    help="Instead of a URL: compare the ledger of this cyberspace with the hosts, and repair it.",
)
@_ca_option
@through_daemon_set
async def status(
    options: GlobalOptions,
    url: str | None,
    config: str | None,
    ca_file: Path | None,
    via: NodeAccess,
) -> None:
    """Ask the cyberspace at URL what it offers and how much of it is taken.

    With --config, the operator sees who holds what. What is on hosts and not in the ledger, or the
    other way round, is told and put right.
    """
    from kvestigate.cybernet.rendering import accounts_blocks, info_blocks

    if (url is None) == (config is None):
        raise UsageError(
            "name the URL of a cyberspace, or its file with --config",
            hint="kvestigate cybernet status http://localhost:8765",
        )
    if config is not None:
        from kvestigate.cybernet.serving import accounts

        emit(options, await accounts(loaded_from(config), access_of(options), via), accounts_blocks)
    elif url is not None:
        emit(options, _info(url, _authorities(ca_file)), info_blocks)


@command(
    "call",
    into=cybernet,
    examples=(
        "kvestigate cybernet call report.run --url http://localhost:8765 "
        """--params '{"name": "nodes"}'""",
        "kvestigate cybernet call workspace.gpus --url http://localhost:8765",
    ),
)
@click.argument("operation")
@click.option("--url", required=True, help="Of the cyberspace.")
@click.option("--params", default="{}", metavar="JSON", help="Parameters, as a JSON object.")
@_ca_option
def call(
    options: GlobalOptions, operation: str, url: str, params: str, ca_file: Path | None
) -> None:
    """Call OPERATION once, with the token in $KVESTIGATE_CYBERNET_TOKEN; prints JSON."""
    import msgspec

    from kvestigate.cybernet.remote import carry_out
    from kvestigate.render.encode import to_json, to_yaml

    try:
        parameters = msgspec.json.decode(params)
    except msgspec.DecodeError as error:
        raise UsageError(f"--params: {params!r} is no JSON: {error}") from None
    if not isinstance(parameters, dict):
        raise UsageError(
            f"--params: {params!r} is no JSON object", hint="""write '{"name": "nodes"}'"""
        )
    ca = _authorities(ca_file)
    result = carry_out(url, os.environ.get(_TOKEN, ""), operation, parameters, ca)
    shown = to_yaml(result) if options.output == "yaml" else to_json(result).decode()
    click.echo(shown, nl=False)


@command(
    "hash-token",
    into=cybernet,
    examples=("kvestigate cybernet hash-token < token.txt",),
)
@click.argument("token", required=False)
def hash_token(options: GlobalOptions, token: str | None) -> None:
    """Print the SHA-256 of TOKEN, as auth.tokens has it; better from standard input."""
    from kvestigate.cybernet.tokens import digest

    if token is None:
        typed = sys.stdin.isatty()
        token = click.prompt("token", hide_input=True) if typed else sys.stdin.read()
    token = str(token).strip()
    if not token or any(character.isspace() for character in token):
        raise UsageError(
            "the token is empty or has blanks in it", hint="give one word on standard input"
        )
    click.echo(digest(token))


def _info(url: str, ca: str | None) -> dict[str, Any]:
    from kvestigate.cybernet.remote import info

    return info(url, ca)


def _authorities(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text("ascii")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not PEM"
        raise InputError(f"cannot be read: {reason}", where=str(path)) from error

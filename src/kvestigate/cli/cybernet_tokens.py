"""`kvestigate cybernet token`: who may call a cyberspace, changed while it is served."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvestigate.cli.command import command
from kvestigate.cli.cybernet import config_option, cybernet, loaded_from
from kvestigate.cli.group import group
from kvestigate.cli.options import GlobalOptions, format_option
from kvestigate.cli.output import emit
from kvestigate.errors import InputError, UsageError
from kvestigate.kube import durations

if TYPE_CHECKING:
    from kvestigate.cybernet.spec import TokenSpec

__all__ = ["cybernet"]


@group("token")
def token() -> None:
    """Make, list and revoke tokens of a cyberspace. A gateway that runs heeds it at once."""


cybernet.add_command(token)


@command(
    "create",
    into=token,
    examples=(
        "kvestigate cybernet token create --config pool.yaml --identity ada --expires 30d",
        "kvestigate cybernet token create --config pool.yaml --identity ada --tag gpu",
    ),
)
@config_option
@click.option("--identity", required=True, help="Whose token it is.")
@click.option(
    "--expires", default="", metavar="DURATION", help="How long it is valid; for ever if not given."
)
@click.option("--tag", "tags", multiple=True, help="What else the identity is called; repeatable.")
@format_option
def create(
    options: GlobalOptions, config: str, identity: str, expires: str, tags: tuple[str, ...]
) -> None:
    """Add a token to the file of a cyberspace, and show it this once."""
    from kvestigate.cybernet.rendering import Made, made_blocks
    from kvestigate.cybernet.spec import TokenSpec
    from kvestigate.cybernet.tokens import digest, new_token

    until = _instant(expires)
    made = new_token()
    entry = TokenSpec(identity, digest(made), tags, until)
    _rewrite(config, lambda tokens: (*tokens, entry))
    emit(options, Made(identity, made, entry.sha256, until), made_blocks)


@command("list", into=token, examples=("kvestigate cybernet token list --config pool.yaml",))
@config_option
@format_option
def list_tokens(options: GlobalOptions, config: str) -> None:
    """List the tokens of a cyberspace: whose they are, and until when they are valid."""
    from kvestigate.cybernet.rendering import known_tokens, tokens_blocks

    emit(options, known_tokens(loaded_from(config).space.tokens, time.time()), tokens_blocks)


@command(
    "revoke",
    into=token,
    examples=(
        "kvestigate cybernet token revoke --config pool.yaml --identity ada",
        "kvestigate cybernet token revoke --config pool.yaml 3f9a2c1b",
    ),
)
@config_option
@click.argument("digest", required=False)
@click.option("--identity", default="", help="Instead of DIGEST: all tokens of this identity.")
def revoke(options: GlobalOptions, config: str, digest: str | None, identity: str) -> None:
    """Take the token whose SHA-256 begins with DIGEST out of the file of a cyberspace."""
    if bool(digest) == bool(identity):
        raise UsageError("name one token by its DIGEST, or all of one --identity")

    def kept(tokens: tuple[TokenSpec, ...]) -> tuple[TokenSpec, ...]:
        gone = [
            entry
            for entry in tokens
            if (digest and entry.sha256.startswith(digest.lower())) or entry.identity == identity
        ]
        if not gone or (digest and len(gone) > 1):
            raise InputError(
                f"{len(gone)} tokens are meant by {digest or identity!r}",
                hint="`kvestigate cybernet token list` shows the digests",
            )
        return tuple(entry for entry in tokens if entry not in gone)

    before, after = _rewrite(config, kept)
    for entry in before:
        if entry not in after:
            click.echo(f"revoked {entry.sha256[:12]} of {entry.identity}")


def _instant(written: str) -> float | None:
    if not written:
        return None
    try:
        seconds = durations.parse(written)
    except ValueError as error:
        raise UsageError(f"--expires: {error}", hint="write 30d or 12h") from None
    if seconds <= 0:
        raise UsageError(f"--expires: {written!r} is over already", hint="write 30d or 12h")
    return float(int(time.time() + seconds))


def _rewrite(
    config: str, change: Callable[[tuple[TokenSpec, ...]], tuple[TokenSpec, ...]]
) -> tuple[tuple[TokenSpec, ...], tuple[TokenSpec, ...]]:
    """Change the tokens of a file; those before and after."""
    from kvestigate.cybernet.loading import read_text
    from kvestigate.cybernet.token_file import with_tokens
    from kvestigate.files import replace_file

    space = loaded_from(config).space
    wanted = change(space.tokens)
    text = with_tokens(Path(config).read_text("utf-8"), wanted)
    if read_text(text, config) != replace(space, tokens=wanted):
        raise InputError(
            "auth.tokens: rewriting this list would change other settings of the file",
            where=config,
            hint="change auth.tokens by hand",
        )
    replace_file(Path(config), text.encode(), mode=0o600)
    return space.tokens, wanted

"""`kvestigate kubeconfig`: what is in kubeconfig files, and the same in other forms."""

from __future__ import annotations

import os
from pathlib import Path

import click

from kvestigate.cli.cluster import home
from kvestigate.cli.command import command
from kvestigate.cli.files import json_option, keep_json
from kvestigate.cli.group import group
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.parameters import duration
from kvestigate.cli.progress import counting
from kvestigate.errors import EXIT_FAILED, EXIT_OK, UsageError

_STRATEGIES = ("inline", "extract", "minify", "rename", "merge", "split", "exec-token")

_FILES = click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(path_type=Path))


@group("kubeconfig")
def kubeconfig() -> None:
    """What is in your kubeconfig, does it work, and the same in other forms."""


def _paths(options: GlobalOptions, files: tuple[Path, ...]) -> tuple[Path, ...]:
    """Those given, else those that every command uses."""
    from kvestigate.client.choice import config_paths

    return files or tuple(config_paths(options.access(), os.environ, home())[0])


@command(
    "analyze",
    into=kubeconfig,
    examples=(
        "kvestigate kubeconfig analyze",
        "kvestigate kubeconfig analyze ~/.kube/config team.yaml --fail-on warning",
    ),
)
@_FILES
@click.option(
    "--fail-on",
    type=click.Choice(["warning", "critical"]),
    help="Exit with 1 if a finding has at least this severity.",
)
@json_option
def analyze(
    options: GlobalOptions, files: tuple[Path, ...], fail_on: str | None, json_path: Path | None
) -> int:
    """Say what is in kubeconfig files and what is wrong with it, without a network.

    Names that lead nowhere or are given twice, certificates and tokens that expired or soon
    will, files that others can read, missing plugins, TLS that is not verified, misspelt fields.
    """
    from datetime import UTC, datetime

    from kvestigate.kubeconfigs.analyze import analyze as collect
    from kvestigate.kubeconfigs.rendering import analysis_blocks
    from kvestigate.render.severity import at_least

    result = collect(_paths(options, files), os.environ, datetime.now(UTC))
    emit(options, result, analysis_blocks)
    keep_json(json_path, result)
    found = (it.severity for it in result.findings)
    return EXIT_FAILED if fail_on and at_least(found, fail_on) else EXIT_OK


@command(
    "verify",
    into=kubeconfig,
    examples=("kvestigate kubeconfig verify", "kvestigate kubeconfig verify prod staging"),
)
@click.argument("contexts", nargs=-1, metavar="[CONTEXT]...")
@click.option(
    "--timeout",
    type=duration,
    default="10s",
    show_default=True,
    metavar="DURATION",
    help="How long one context may take, its credential plugin included.",
)
@json_option
async def verify(
    options: GlobalOptions, contexts: tuple[str, ...], timeout: float, json_path: Path | None
) -> int:
    """Ask the server of each context who we are; nothing is changed there.

    Says which servers cannot be reached and why, how each proves itself, its version, whom it
    takes us for, and whether its clock agrees. Exits with 3 if a server cannot be reached, 4 if
    it does not let us in, 1 if contexts fail in different ways.
    """
    from kvestigate.kubeconfigs.rendering import verification_blocks
    from kvestigate.kubeconfigs.verify import VerifyOptions
    from kvestigate.kubeconfigs.verify import verify as collect

    chosen = contexts or ((options.context,) if options.context else ())
    wanted = VerifyOptions(chosen, timeout)
    with counting("waiting for") as progress:
        result = await collect(options.access(), wanted, os.environ, home(), progress)
    emit(options, result, verification_blocks)
    keep_json(json_path, result)
    return result.exit_code


@command(
    "convert",
    into=kubeconfig,
    examples=(
        "kvestigate kubeconfig convert inline --apply",
        "kvestigate kubeconfig convert minify --context prod --out prod.yaml --apply",
        "kvestigate kubeconfig convert merge a.yaml b.yaml --out both.yaml --apply",
    ),
)
@click.argument("strategy", type=click.Choice(_STRATEGIES), metavar="STRATEGY")
@_FILES
@click.option(
    "--out",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="A new file, for extract and split a directory; else in place, where that is possible.",
)
@click.option(
    "--name", default="", metavar="NAME", help="Entry to rename; the current context if not given."
)
@click.option("--to", "new_name", default="", metavar="NAME", help="New name of the entry.")
@click.option(
    "--kind",
    type=click.Choice(["context", "cluster", "user"]),
    default="context",
    show_default=True,
    help="Kind of the entry to rename.",
)
@click.option("--apply", is_flag=True, help="Write the files instead of only showing the changes.")
async def convert(
    options: GlobalOptions,
    strategy: str,
    files: tuple[Path, ...],
    out: Path | None,
    name: str,
    new_name: str,
    kind: str,
    apply: bool,
) -> None:
    """Write the same access in another form; shows what changes until --apply.

    \b
    inline      files that it names become part of it
    extract     certificates, keys and tokens become files beside it
    minify      one context (--context) and only what it needs
    rename      --name becomes --to, wherever it is spoken of
    merge       several files become one; who shares a name is renamed
    split       a file for each context
    exec-token  what the credential plugin says takes the plugin's place

    A file that is replaced is kept beside the new one; no other file is overwritten. Files are
    written at once and for you alone. Comments are lost.
    """
    from datetime import UTC, datetime

    from kvestigate.kubeconfigs.convert import ConvertOptions
    from kvestigate.kubeconfigs.convert import convert as collect
    from kvestigate.kubeconfigs.rendering import conversion_blocks

    if strategy != "rename" and (name or new_name):
        given = "--name" if name else "--to"
        raise UsageError(f"{given} is for rename, not for {strategy}", hint=f"omit {given}")
    wanted = ConvertOptions(
        strategy=strategy,
        paths=tuple(it for it in _paths(options, files) if files or it.exists()),
        out=out,
        context=options.context,
        name=name,
        new_name=new_name,
        kind=kind,
        apply=apply,
    )
    emit(options, await collect(wanted, os.environ, datetime.now(UTC)), conversion_blocks)


@command(
    "diff",
    into=kubeconfig,
    examples=("kvestigate kubeconfig diff ~/.kube/config backup.yaml",),
)
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@json_option
def diff(options: GlobalOptions, before: Path, after: Path, json_path: Path | None) -> None:
    """Show how two kubeconfigs differ, with secrets as fingerprints.

    Order and layout do not count, nor whether a certificate is in the file or beside it.
    """
    from kvestigate.kubeconfigs.files import compare
    from kvestigate.kubeconfigs.rendering import difference_blocks

    found = compare(before, after)
    emit(options, found, difference_blocks)
    keep_json(json_path, found)

"""The operations on kubeconfig files, as the catalog lists them. Operators only."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from kvestigate.client.choice import config_paths
from kvestigate.errors import EXIT_FAILED, EXIT_OK, UsageError
from kvestigate.files import home
from kvestigate.kubeconfigs import rendering
from kvestigate.kubeconfigs.analyze import analyze
from kvestigate.kubeconfigs.convert import Conversion, ConvertOptions, convert
from kvestigate.kubeconfigs.difference import Difference
from kvestigate.kubeconfigs.files import compare
from kvestigate.kubeconfigs.model import Analysis
from kvestigate.kubeconfigs.verify import Verification, VerifyOptions, verify
from kvestigate.operation import Context, Effect, Operation, Touched, param, touches_nothing
from kvestigate.render.severity import at_least


def _paths(context: Context, named: Sequence[Path]) -> tuple[Path, ...]:
    """The named files, else those that every command uses."""
    return tuple(named) or tuple(config_paths(context.wanted, os.environ, home())[0])


@dataclass(frozen=True, slots=True)
class AnalyzeOptions:
    paths: Annotated[
        tuple[Path, ...], param("Kubeconfig files.", argument=True, metavar="[FILE]...")
    ] = ()
    fail_on: Annotated[
        Literal["warning", "critical"] | None,
        param("Exit with 1 if a finding has at least this severity."),
    ] = None


async def _analyze(context: Context, options: AnalyzeOptions) -> Analysis:
    return analyze(_paths(context, options.paths), os.environ, datetime.now(UTC))


def _severe(options: AnalyzeOptions, analysis: Analysis) -> int:
    severities = (finding.severity for finding in analysis.findings)
    return EXIT_FAILED if options.fail_on and at_least(severities, options.fail_on) else EXIT_OK


async def _verify(context: Context, options: VerifyOptions) -> Verification:
    if not options.contexts and context.wanted.context:
        options = replace(options, contexts=(context.wanted.context,))
    return await verify(context.wanted, options, os.environ, home(), context.progress)


async def _convert(context: Context, options: ConvertOptions) -> Conversion:
    if options.strategy != "rename" and (options.name or options.new_name):
        flag = "--name" if options.name else "--to"
        raise UsageError(f"{flag} is for rename, not for {options.strategy}", hint=f"omit {flag}")
    if not options.paths:
        usual = (path for path in _paths(context, ()) if path.exists())
        options = replace(options, paths=tuple(usual))
    return await convert(context.wanted, options, os.environ, datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class DiffOptions:
    before: Annotated[Path, param("A kubeconfig file.", argument=True)]
    after: Annotated[Path, param("A kubeconfig file.", argument=True)]


async def _diff(context: Context, options: DiffOptions) -> Difference:
    return compare(options.before, options.after)


ANALYZE: Operation[AnalyzeOptions, Analysis] = Operation(
    name="kubeconfig.analyze",
    summary="Show what is in kubeconfig files and what is wrong with them, without a network.",
    description=(
        "Finds missing and duplicate names, certificates and tokens that have expired or expire "
        "soon, files that others can read, missing plugins, TLS that is not verified, and "
        "misspelt fields."
    ),
    examples=(
        "kvestigate kubeconfig analyze",
        "kvestigate kubeconfig analyze ~/.kube/config team.yaml --fail-on warning",
    ),
    input=AnalyzeOptions,
    output=Analysis,
    effect=Effect.READ,
    touches=lambda options: Touched(files=tuple(map(str, options.paths))),
    handler=_analyze,
    json_file=True,
    render=rendering.analysis_blocks,
    exit_code_for=_severe,
)
VERIFY: Operation[VerifyOptions, Verification] = Operation(
    name="kubeconfig.verify",
    summary="Connect to the server of each context and show who you are there; nothing is changed.",
    description=(
        "Shows which servers cannot be reached and why, how their certificates are verified, "
        "their versions, your user name there, and whether their clocks agree with yours. Exits "
        "with 3 if a server cannot be reached, 4 if access is denied, 1 if contexts fail in "
        "different ways."
    ),
    examples=("kvestigate kubeconfig verify", "kvestigate kubeconfig verify prod staging"),
    input=VerifyOptions,
    output=Verification,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=_verify,
    doing=lambda options: "waiting for",
    counts=True,
    json_file=True,
    render=rendering.verification_blocks,
    exit_code=lambda verification: verification.exit_code,
)
CONVERT: Operation[ConvertOptions, Conversion] = Operation(
    name="kubeconfig.convert",
    summary="Write a kubeconfig in another form; without --apply only the changes are shown.",
    description="""\
\b
inline      referenced files become part of the kubeconfig
extract     certificates, keys and tokens become files beside it
minify      one context (--context) and only what it needs
rename      --name becomes --to, also where other entries refer to it
merge       several files become one; entries that share a name are renamed
split       a file for each context
exec-token  the current credentials of the plugin replace the plugin

A file that is replaced is kept beside the new one; no other file is overwritten. Only you can read
the files that are written. Comments are lost.""",
    examples=(
        "kvestigate kubeconfig convert inline --apply",
        "kvestigate kubeconfig convert minify --context prod --out prod.yaml --apply",
        "kvestigate kubeconfig convert merge a.yaml b.yaml --out both.yaml --apply",
    ),
    input=ConvertOptions,
    output=Conversion,
    effect=Effect.WRITE,
    touches=lambda options: Touched(
        files=tuple(str(path) for path in (*options.paths, options.out) if path)
    ),
    handler=_convert,
    render=rendering.conversion_blocks,
)
DIFF: Operation[DiffOptions, Difference] = Operation(
    name="kubeconfig.diff",
    summary="Show how two kubeconfigs differ, with secrets as fingerprints.",
    description=(
        "Order and layout do not count, nor whether a certificate is in the file or beside it."
    ),
    examples=("kvestigate kubeconfig diff ~/.kube/config backup.yaml",),
    input=DiffOptions,
    output=Difference,
    effect=Effect.READ,
    touches=lambda options: Touched(files=(str(options.before), str(options.after))),
    handler=_diff,
    json_file=True,
    render=rendering.difference_blocks,
)

"""`kvestigate audit`: every report and what is wrong, and what changed between two audits."""

from __future__ import annotations

from pathlib import Path

import click

from kvestigate.cli.cluster import access_of
from kvestigate.cli.files import json_option, keep_json
from kvestigate.cli.group import runnable_group
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.progress import counting
from kvestigate.errors import EXIT_FAILED, EXIT_OK


@runnable_group(
    "audit",
    examples=(
        "kvestigate audit",
        "kvestigate audit --json monday.json",
        "kvestigate audit --fail-on critical",
    ),
)
@json_option
@click.option(
    "--fail-on",
    type=click.Choice(["warning", "critical"]),
    help="Exit with 1 if there is a finding at least that bad.",
)
@click.option("--no-logs", is_flag=True, help="Do not read the last log lines of crash loops.")
async def audit(
    options: GlobalOptions, json_path: Path | None, fail_on: str | None, no_logs: bool
) -> int:
    """What is going on in this cluster, and what is wrong with it?

    Runs every report over one snapshot and ends with findings, the worst first. What may not
    be listed is named, and the rest goes on.
    """
    from kvestigate.reports.audit import AuditOptions, collect
    from kvestigate.reports.findings.model import at_least
    from kvestigate.reports.views import audit_blocks

    with counting() as progress:
        result = await collect(access_of(options), AuditOptions(logs=not no_logs), progress)
    emit(options, result, audit_blocks)
    keep_json(json_path, result)
    return EXIT_FAILED if fail_on and at_least(result.findings, fail_on) else EXIT_OK

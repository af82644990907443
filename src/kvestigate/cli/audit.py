"""`kvestigate audit` and `kvestigate audit diff`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvestigate.cli.command import operation_command
from kvestigate.cli.files import json_option, keep_json, read_whole, write_whole
from kvestigate.cli.group import runnable_group
from kvestigate.cli.options import output_option
from kvestigate.cli.output import emit
from kvestigate.cli.progress import counting
from kvestigate.cli.run import Run
from kvestigate.cli.watched_audit import watch_findings
from kvestigate.errors import EXIT_DENIED, EXIT_FAILED, EXIT_OK, UsageError

_SARIF = "sarif"
_EVERY = "all"


if TYPE_CHECKING:
    from kvestigate.health.audit import Audit
    from kvestigate.health.model import Profile
    from kvestigate.health.waivers import Waiver

fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(["warning", "critical"]),
    help="Exit with code 1 if a finding is this severe or worse.",
)


@runnable_group(
    "audit",
    examples=(
        "kvestigate audit",
        "kvestigate audit --json monday.json",
        "kvestigate audit -n web --fail-on critical",
        "kvestigate audit --fail-on warning --baseline monday.json --junit audit.xml",
        "kvestigate audit --watch -o json",
        "kvestigate audit --profile security,cost",
        "kvestigate audit -o sarif > findings.sarif",
    ),
)
@output_option(_SARIF)
@json_option
@fail_on_option
@click.option(
    "--allow-gaps",
    is_flag=True,
    help="With --fail-on: accept that rules could not run because something may not be read.",
)
@click.option(
    "--baseline",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Accept the findings of an earlier audit, which --json wrote.",
)
@click.option(
    "--waivers",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Accept the findings that FILE names, each with owner, reason and last day.",
)
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    metavar="NAME",
    help="Check only these rules, and give their advice: reliability, security, cost or all; "
    "repeatable, or separated by commas.",
)
@click.option(
    "--all",
    "every_fault",
    is_flag=True,
    help="Show every fault as a finding of its own, also those that follow from another.",
)
@click.option(
    "--prices",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Prices of GPUs and power instead of the default ones: a YAML file.",
)
@click.option(
    "--sarif",
    "sarif_path",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Also write the findings as SARIF to PATH, for code scanners.",
)
@click.option(
    "--junit",
    "junit_path",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Also write the rules and findings as JUnit XML to PATH, for CI systems.",
)
@click.option(
    "--html",
    "html_path",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Also write an HTML page with charts to PATH, readable offline.",
)
@click.option(
    "--watch", is_flag=True, help="Look again and again, and show findings as they come and go."
)
@click.option(
    "--every",
    metavar="SECONDS",
    type=click.FloatRange(min=1),
    default=30.0,
    show_default=True,
    help="With --watch: the pause between two looks.",
)
@click.option(
    "--webhook", metavar="URL", help="With --watch: POST every change as JSON to this URL, too."
)
@click.option(
    "--slack", metavar="URL", help="With --watch: post changes to a Slack-style incoming webhook."
)
@click.option(
    "--no-logs", is_flag=True, help="Do not read the last log line of crashing containers."
)
async def audit(
    run: Run,
    json_path: Path | None,
    sarif_path: Path | None,
    junit_path: Path | None,
    html_path: Path | None,
    fail_on: str | None,
    allow_gaps: bool,
    baseline: Path | None,
    waivers: Path | None,
    watch: bool,
    every: float,
    webhook: str | None,
    slack: str | None,
    profiles: tuple[str, ...],
    every_fault: bool,
    prices: Path | None,
    no_logs: bool,
) -> int:
    """Show every report of the cluster, and the problems found.

    Reads the cluster once, runs every report and ends with the findings, the most severe first.
    What may not be listed is named, and the audit goes on with the rest. With -n it reads one
    namespace and the objects without a namespace. `-o sarif` prints the findings for code scanners.

    For CI: --fail-on fails on findings that are in neither the --baseline nor the --waivers, and
    when a rule could not run because something may not be read.

    --watch goes on until Ctrl-C. With -o json every change is a line of JSON.
    """
    from kvestigate.health.audit import AuditOptions, accept
    from kvestigate.health.rendering import aimed, audit_blocks
    from kvestigate.snapshot.price_files import load_prices

    known, accepted = _baseline(baseline), _waivers(waivers)
    options = run.options
    wanted = AuditOptions(
        not no_logs,
        options.namespace,
        _profiles(profiles),
        every_fault,
        None if prices is None else load_prices(prices),
    )
    if watch:
        _check_watch(json_path, sarif_path, junit_path, html_path, fail_on)

        async def look() -> Audit:
            return accept(await run.result(wanted), accepted, known)

        return await watch_findings(options, look, every, webhook, slack)
    _check_no_watch(webhook, slack)
    result = accept(await run.result(wanted, progress=counting()), accepted, known)
    if options.output == _SARIF or sarif_path is not None:
        from kvestigate.health.sarif import to_sarif

        keep_json(sarif_path, to_sarif(result))
    if options.output == _SARIF:
        emit(replace(options, output="json"), to_sarif(result), lambda _: ())
    else:
        emit(options, result, lambda audit: audit_blocks(aimed(audit, options.cluster_flags)))
    keep_json(json_path, result)
    if junit_path is not None:
        from kvestigate.health.junit import to_junit

        write_whole(junit_path, to_junit(result))
    if html_path is not None:
        from kvestigate.health.page import to_page

        write_whole(html_path, to_page(aimed(result, options.cluster_flags)).encode())
    return _passed(result, fail_on, allow_gaps)


def _check_watch(*single: object) -> None:
    names = ("--json", "--sarif", "--junit", "--html", "--fail-on")
    for name, given in zip(names, single, strict=True):
        if given is not None:
            raise UsageError(
                f"--watch and {name} cannot be combined",
                hint="an audit that is watched has no end; use -o json for a line per change",
            )


def _check_no_watch(webhook: str | None, slack: str | None) -> None:
    for name, given in (("--webhook", webhook), ("--slack", slack)):
        if given is not None:
            raise UsageError(f"{name} needs --watch", hint="add --watch")


def _passed(audit: Audit, fail_on: str | None, allow_gaps: bool) -> int:
    from kvestigate.health.gate import objections
    from kvestigate.snapshot.gaps import Cause

    if not audit.objects and any(gap.cause is Cause.DENIED for gap in audit.gaps):
        return EXIT_DENIED
    reasons = objections(audit, fail_on, allow_gaps=allow_gaps) if fail_on else ()
    for reason in reasons:
        click.echo(f"failed: {reason}", err=True)
    return EXIT_FAILED if reasons else EXIT_OK


def _baseline(path: Path | None) -> frozenset[str]:
    from kvestigate.health.difference import keys, parse

    return frozenset() if path is None else keys(parse(_read(path), str(path)))


def _waivers(path: Path | None) -> tuple[Waiver, ...]:
    from kvestigate.health.waivers import read_waivers

    return () if path is None else read_waivers(read_whole(path), str(path))


@operation_command(
    "audit.diff",
    into=audit,
    examples=("kvestigate audit diff monday.json tuesday.json",),
)
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@json_option
@fail_on_option
async def diff(
    run: Run, before: Path, after: Path, json_path: Path | None, fail_on: str | None
) -> int:
    """Show what changed between two audits that `audit --json` wrote.

    With --fail-on only findings that are new in the second audit count.
    """
    from kvestigate.health.difference import DiffOptions, parse
    from kvestigate.render.severity import Severity, at_least

    if run.options.output == _SARIF:
        raise UsageError("-o sarif: `audit diff` has no SARIF output", hint="use -o json")
    audits = (parse(_read(path), str(path)) for path in (before, after))
    difference = await run(DiffOptions(*audits), json_path=json_path)
    severities = (Severity(finding.severity) for finding in difference.new_findings)
    return EXIT_FAILED if fail_on and at_least(severities, fail_on) else EXIT_OK


def _profiles(written: Sequence[str]) -> tuple[Profile, ...]:
    """`security,cost` or both one by one; `all` is every profile."""
    from kvestigate.health.model import Profile

    known = {profile.value: (profile,) for profile in Profile} | {_EVERY: tuple(Profile)}
    names = [name.strip() for words in written for name in words.split(",")]
    for name in names:
        if name not in known:
            raise UsageError(
                f"--profile: {name!r} is not a profile", hint=f"use {', '.join(known)}"
            )
    return tuple(dict.fromkeys(profile for name in names for profile in known[name]))


def _read(path: Path) -> bytes:
    return read_whole(path, hint="create one with `kvestigate audit --json FILE`")

"""`kvestigate app`: programs that run on hosts or in pods, from one description."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kvestigate.cli.command import operation_command
from kvestigate.cli.group import group
from kvestigate.cli.node_access import through_daemon_set
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.parameters import duration
from kvestigate.cli.progress import ticking
from kvestigate.cli.run import Run
from kvestigate.errors import (
    EXIT_CONFLICT,
    EXIT_FAILED,
    EXIT_OK,
    EXIT_TIMEOUT,
    UsageError,
)
from kvestigate.files import home

if TYPE_CHECKING:
    from kvestigate.app.manage import AppOptions
    from kvestigate.app.model import AppOutcome
    from kvestigate.app.spec import AppSpec
    from kvestigate.cybernet.apps import Gate
    from kvestigate.node_access.model import NodeAccess


@group("app")
def app() -> None:
    """Run a program on a host or in pods, from one description."""


CYBERSPACE = "KVESTIGATE_CYBERSPACE"
_UNGATED = (
    "note: outside of any cyberspace: no policy or quota is checked, and no audit log is written "
    "(--cyberspace FILE)"
)
_spec_argument = click.argument("spec", metavar="SPEC.yaml", type=click.Path(path_type=Path))


_conflicts_option = click.option(
    "--force-conflicts", is_flag=True, help="Take over fields that other managers own."
)


_timeout_option = click.option(
    "--timeout",
    type=duration,
    default="1m",
    show_default=True,
    metavar="DURATION",
    help="How long to wait until what is removed is gone.",
)


def _within_cyberspace(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add in whose name it is done; the command is given `gate`, None without a cyberspace."""

    @click.option(
        "--cyberspace",
        metavar="FILE",
        help="Keep within the constraints and quotas of this cyberspace, and be recorded there; "
        f"${CYBERSPACE}, or ~/.config/kvestigate/cyberspace.yaml, if not given.",
    )
    @click.option(
        "--no-cyberspace",
        "free",
        is_flag=True,
        help="Act outside the configured cyberspace: nothing is checked, counted or recorded.",
    )
    @click.option(
        "--identity",
        default="",
        help="In whose name there; the only one of the cyberspace when not given.",
    )
    @functools.wraps(function)
    def call(*args: Any, cyberspace: str | None, free: bool, identity: str, **kwargs: Any) -> Any:
        if free and cyberspace is not None:
            raise UsageError("--cyberspace and --no-cyberspace exclude each other")
        config = None if free else cyberspace or configured_cyberspace(os.environ)
        return function(*args, gate=_gate(config, identity), **kwargs)

    return call


def configured_cyberspace(environ: Mapping[str, str]) -> str | None:
    """The file of the cyberspace that holds where no other one is named; None without one."""
    if named := environ.get(CYBERSPACE):
        return named
    own = home()
    base = environ.get("XDG_CONFIG_HOME") or (own and own / ".config")
    path = Path(base) / "kvestigate" / "cyberspace.yaml" if base else None
    return str(path) if path is not None and path.exists() else None


def _gate(config: str | None, identity: str) -> Gate | None:
    if config is None:
        if identity:
            raise UsageError(
                "--identity says in whose name within a --cyberspace, and there is none",
                hint=f"add --cyberspace FILE, or set {CYBERSPACE}",
            )
        return None
    from kvestigate.catalog import operations
    from kvestigate.cybernet.apps import Gate
    from kvestigate.cybernet.loading import load_cyberspace
    from kvestigate.cybernet.serving import identity_of

    loaded = load_cyberspace(config, operations())
    return Gate(loaded, identity_of(loaded, identity))


@operation_command(
    "app.render",
    into=app,
    examples=(
        "kvestigate app render trainer.yaml",
        "kvestigate app render web-service.yaml | kubectl apply -f -",
    ),
)
@_spec_argument
async def render(run: Run, spec: Path) -> None:
    """Print what an App compiles to.

    For pods these are manifests that can be applied as they are; for hosts, the workspace and
    what is started in it. YAML, or JSON with -o json. No cluster is asked.
    """
    from kvestigate.app.operations import AppName
    from kvestigate.app.rendering import as_json, as_yaml

    compiled = await run.result(AppName(_load(run.options, spec)))
    write = as_json if run.options.output == "json" else as_yaml
    sys.stdout.write(write(compiled.app))


@operation_command("app.plan", into=app, examples=("kvestigate app plan trainer.yaml",))
@_spec_argument
@_conflicts_option
@_within_cyberspace
@through_daemon_set
async def plan(
    run: Run, spec: Path, force_conflicts: bool, gate: Gate | None, via: NodeAccess
) -> int:
    """Show what `up` would do, step by step.

    The cluster is asked, and nothing is changed.
    """
    options = _options(run.options, spec, force_conflicts=force_conflicts)
    return await _perform(run, gate, options, via, "planning")


@operation_command(
    "app.up",
    into=app,
    examples=(
        "kvestigate app up trainer.yaml",
        "kvestigate app up trainer.yaml --apply --i-understand-this-modifies-cluster",
        "kvestigate app up trainer.yaml --cyberspace research-pool.yaml",
        "generate-my-app | kvestigate app up -",
    ),
)
@_spec_argument
@_conflicts_option
@_timeout_option
@_within_cyberspace
@through_daemon_set
async def up(
    run: Run,
    spec: Path,
    force_conflicts: bool,
    timeout: float,
    gate: Gate | None,
    via: NodeAccess,
) -> int:
    """Bring an App up, or make it what its description says by now.

    SPEC is a file, or - for standard input; what it names is relative to where it is.
    An App that already is as it says is left alone. What an earlier version of it had, and this
    one has not, is removed. Exits with 6 if somebody else owns a part of it.
    """
    options = _options(run.options, spec, force_conflicts=force_conflicts, timeout=timeout)
    return await _perform(run, gate, options, via, "bringing up")


@operation_command(
    "app.down",
    into=app,
    examples=(
        "kvestigate app down trainer.yaml",
        "kvestigate app down trainer.yaml --apply --i-understand-this-modifies-cluster",
    ),
)
@_spec_argument
@_timeout_option
@_within_cyberspace
@through_daemon_set
async def down(run: Run, spec: Path, timeout: float, gate: Gate | None, via: NodeAccess) -> int:
    """Take an App down: its objects, or its workspaces with all that is in them.

    Exits with 7 if a part of it is not gone in time.
    """
    options = _options(run.options, spec, timeout=timeout)
    return await _perform(run, gate, options, via, "taking down")


@operation_command("app.diff", into=app, examples=("kvestigate app diff trainer.yaml",))
@_spec_argument
@_within_cyberspace
@through_daemon_set
async def diff(run: Run, spec: Path, gate: Gate | None, via: NodeAccess) -> int:
    """Show whether an App changed since it was applied, and what `up` would do now.

    The digest of the App is compared with the recorded one; then `up` is planned.
    """
    options = _options(run.options, spec)
    owner = "" if gate is None else gate.holder
    found = await run(options, via=via, owner=owner, doing=f"comparing App {options.app.full_name}")
    return _exit_code(found.plan)


@operation_command("app.status", into=app, examples=("kvestigate app status trainer.yaml",))
@_spec_argument
async def status(run: Run, spec: Path) -> None:
    """Show what the last `up` or `down` of an App came to.

    It is what was recorded on this machine; no cluster is asked. An App that is on several
    clusters is shown on the one that is meant, and otherwise where it changed last.
    """
    from kvestigate.app.operations import AppName

    await run(AppName(_load(run.options, spec)))


@operation_command(
    "app.list", into=app, examples=("kvestigate app list", "kvestigate app list -n research")
)
async def list_(run: Run) -> None:
    """List all Apps that were brought up from this machine.

    It is what was recorded on this machine; no cluster is asked.
    """
    from kvestigate.app.operations import ListOptions

    await run(ListOptions(run.options.namespace))


async def _perform(
    run: Run, gate: Gate | None, options: AppOptions, via: NodeAccess, doing: str
) -> int:
    """Run an operation on an App, through the cyberspace if there is one."""
    line = f"{doing if run.acts else 'planning'} App {options.app.full_name}"
    if gate is None:
        if run.operation.consequence is not None and run.acts:
            click.echo(_UNGATED, err=True)
        outcome = await run(options, via=via, doing=line)
    else:
        with ticking(line):
            outcome = await gate.run(run.operation, run.context(via), options)
        emit(run.options, outcome, run.operation.render)
        run.confirm(outcome)
    return _exit_code(outcome)


def _load(options: GlobalOptions, path: Path) -> AppSpec:
    from kvestigate.app.load import load_app_friendly, read_app_friendly

    if str(path) == "-":
        spec = read_app_friendly(sys.stdin.buffer.read(), "-", path.parent)
    else:
        spec = load_app_friendly(path)
    if options.namespace and options.namespace != spec.metadata.namespace:
        raise UsageError(
            f"App {spec.metadata.name!r} is for namespace {spec.metadata.namespace!r}, "
            f"and --namespace says {options.namespace!r}",
            hint="leave out --namespace, or change metadata.namespace",
        )
    return spec


def _options(options: GlobalOptions, path: Path, **given: Any) -> AppOptions:
    from kvestigate.app.manage import AppOptions

    return AppOptions(app=_load(options, path), directory=path.parent, **given)


def _exit_code(outcome: AppOutcome) -> int:
    from kvestigate.app.model import Action

    bad = {step.action for step in outcome.steps if not step.action.good} - {Action.SKIP}
    if bad == {Action.CONFLICT}:
        return EXIT_CONFLICT
    if bad == {Action.LEAVE}:
        return EXIT_TIMEOUT
    return EXIT_FAILED if outcome.failed else EXIT_OK

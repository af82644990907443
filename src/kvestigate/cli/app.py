"""`kvestigate app`: programs that run on hosts or in pods, from one description."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kvestigate.cli.cluster import access_of
from kvestigate.cli.confirm import Confirmation, Consequence, writes
from kvestigate.cli.group import command, group
from kvestigate.cli.node_access import through_daemon_set
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit, emit_list
from kvestigate.cli.parameters import duration
from kvestigate.cli.progress import ticking
from kvestigate.errors import (
    EXIT_CONFLICT,
    EXIT_FAILED,
    EXIT_OK,
    EXIT_TIMEOUT,
    NoCluster,
    NotFound,
    UsageError,
)

if TYPE_CHECKING:
    from kvestigate.app.manage import AppOptions
    from kvestigate.app.model import AppOutcome
    from kvestigate.app.spec import AppSpec
    from kvestigate.app.status import RecordedStatus
    from kvestigate.cybernet.apps import Gate
    from kvestigate.node_access.model import NodeAccess

F = TypeVar("F")


@group("app")
def app() -> None:
    """Run a program on a host or in pods, from one description."""


def _spec_argument(function: F) -> F:
    argument: Any = click.argument("spec", metavar="SPEC.yaml", type=click.Path(path_type=Path))
    decorated: F = argument(function)
    return decorated


def _conflicts_option(function: F) -> F:
    option: Any = click.option(
        "--force-conflicts", is_flag=True, help="Take over fields that other managers own."
    )
    decorated: F = option(function)
    return decorated


def _timeout_option(function: F) -> F:
    option: Any = click.option(
        "--timeout",
        type=duration,
        default="1m",
        show_default=True,
        metavar="DURATION",
        help="How long to wait until what is removed is gone.",
    )
    decorated: F = option(function)
    return decorated


def _within_cyberspace(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add in whose name it is done; the command is given `gate`, None without a cyberspace."""

    @click.option(
        "--cyberspace",
        metavar="FILE",
        help="Keep within the constraints and quotas of this cyberspace, and be recorded there.",
    )
    @click.option(
        "--identity",
        default="",
        help="In whose name there; the only one of the cyberspace when not given.",
    )
    @functools.wraps(function)
    def call(*args: Any, cyberspace: str | None, identity: str, **kwargs: Any) -> Any:
        return function(*args, gate=_gate(cyberspace, identity), **kwargs)

    return call


def _gate(config: str | None, identity: str) -> Gate | None:
    if config is None:
        if identity:
            raise UsageError(
                "--identity says in whose name within a --cyberspace, and there is none",
                hint="add --cyberspace FILE",
            )
        return None
    from kvestigate.catalog import OPERATIONS
    from kvestigate.cybernet.apps import Gate
    from kvestigate.cybernet.loading import load_cyberspace
    from kvestigate.cybernet.serving import identity_of

    loaded = load_cyberspace(config, OPERATIONS)
    return Gate(loaded, identity_of(loaded, identity))


@command(
    "render",
    into=app,
    examples=(
        "kvestigate app render trainer.yaml",
        "kvestigate app render web-service.yaml | kubectl apply -f -",
    ),
)
@_spec_argument
async def render(options: GlobalOptions, spec: Path) -> None:
    """Print what an App compiles to.

    For pods these are manifests that can be applied as they are; for hosts, the workspace and
    what is started in it. YAML, or JSON with -o json. No cluster is asked.
    """
    from kvestigate.app.rendering import as_json, as_yaml

    write = as_json if options.output == "json" else as_yaml
    sys.stdout.write(write(_load(options, spec)))


@command("plan", into=app, examples=("kvestigate app plan trainer.yaml",))
@_spec_argument
@_conflicts_option
@_within_cyberspace
@through_daemon_set
async def plan(
    options: GlobalOptions, spec: Path, force_conflicts: bool, gate: Gate | None, via: NodeAccess
) -> int:
    """Show what `up` would do, step by step.

    The cluster is asked, and nothing is changed.
    """
    from kvestigate.app.manage import up as collect
    from kvestigate.app.present import outcome_blocks

    wanted = _options(options, spec, force_conflicts=force_conflicts, via=via)
    act = collect if gate is None else gate.up
    with _ticking("bringing up", wanted):
        outcome = await act(access_of(options), wanted)
    emit(options, outcome, outcome_blocks)
    return _exit_code(outcome)


@command(
    "up",
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
@writes(Consequence.MODIFIES_CLUSTER)
async def up(
    options: GlobalOptions,
    spec: Path,
    force_conflicts: bool,
    timeout: float,
    gate: Gate | None,
    via: NodeAccess,
    confirmation: Confirmation,
) -> int:
    """Bring an App up, or make it what its description says by now.

    SPEC is a file, or - for standard input; what it names is relative to where it is.
    An App that already is as it says is left alone. What an earlier version of it had, and this
    one has not, is removed. Exits with 6 if somebody else owns a part of it.
    """
    from kvestigate.app.manage import up as collect
    from kvestigate.app.present import outcome_blocks

    wanted = _options(
        options,
        spec,
        force_conflicts=force_conflicts,
        timeout=timeout,
        via=via,
        apply=confirmation.apply and confirmation.understood,
    )
    act = collect if gate is None else gate.up
    with _ticking("bringing up", wanted):
        outcome = await act(access_of(options), wanted)
    emit(options, outcome, outcome_blocks)
    if outcome.changes_anything and not outcome.failed:
        confirmation.require()
    return _exit_code(outcome)


@command(
    "down",
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
@writes(Consequence.MODIFIES_CLUSTER)
async def down(
    options: GlobalOptions,
    spec: Path,
    timeout: float,
    gate: Gate | None,
    via: NodeAccess,
    confirmation: Confirmation,
) -> int:
    """Take an App down: its objects, or its workspaces with all that is in them.

    Exits with 7 if a part of it is not gone in time.
    """
    from kvestigate.app.manage import down as collect
    from kvestigate.app.present import outcome_blocks

    apply = confirmation.apply and confirmation.understood
    wanted = _options(options, spec, timeout=timeout, via=via, apply=apply)
    act = collect if gate is None else gate.down
    with _ticking("taking down", wanted):
        outcome = await act(access_of(options), wanted)
    emit(options, outcome, outcome_blocks)
    if outcome.changes_anything and not outcome.failed:
        confirmation.require()
    return _exit_code(outcome)


@command("diff", into=app, examples=("kvestigate app diff trainer.yaml",))
@_spec_argument
@_within_cyberspace
@through_daemon_set
async def diff(options: GlobalOptions, spec: Path, gate: Gate | None, via: NodeAccess) -> int:
    """Show whether an App changed since it was applied, and what the cluster would do about it.

    The digest of the App is compared with the recorded one; then `up` is planned.
    """
    from kvestigate.app.manage import drift as collect
    from kvestigate.app.present import drift_blocks

    holder = "" if gate is None else gate.holder
    wanted = _options(options, spec, via=via, holder=holder)
    with _ticking("comparing", wanted):
        found = await collect(access_of(options), wanted)
    emit(options, found, drift_blocks)
    return _exit_code(found.plan)


@command("status", into=app, examples=("kvestigate app status trainer.yaml",))
@_spec_argument
async def status(options: GlobalOptions, spec: Path) -> None:
    """Show what the last `up` or `down` of an App came to.

    It is what was recorded on this machine; no cluster is asked. An App that is on several
    clusters is shown on the one that is meant, and otherwise where it changed last.
    """
    from kvestigate.app.present import discreet, status_blocks

    wanted = _load(options, spec)
    found = _recorded(options, wanted)
    if found is None:
        raise NotFound(
            f"App {wanted.full_name} was never brought up from here",
            hint=f"kvestigate app plan {spec} shows what would be done",
        )
    emit(options, discreet(found), status_blocks)


@command("list", into=app, examples=("kvestigate app list", "kvestigate app list -n research"))
async def list_(options: GlobalOptions) -> None:
    """List all Apps that were brought up from this machine.

    It is what was recorded on this machine; no cluster is asked.
    """
    from kvestigate.app.present import discreet, list_blocks
    from kvestigate.app.status import recorded_statuses

    found = [discreet(it) for it in recorded_statuses()]
    if options.namespace:
        found = [it for it in found if it.namespace == options.namespace]
    emit_list(options, "apps", found, list_blocks)


def _recorded(options: GlobalOptions, spec: AppSpec) -> RecordedStatus | None:
    from kvestigate.app.status import read_status, status_on, status_path_for

    name = (spec.metadata.namespace, spec.metadata.name)
    try:
        server = str(access_of(options).server)
    except NoCluster:  # a record can be read without one, unless it was asked for by name
        if options.kubeconfig or options.context:
            raise
        return read_status(status_path_for(*name))
    return status_on(*name, server) or read_status(status_path_for(*name))


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


def _ticking(doing: str, wanted: AppOptions) -> AbstractContextManager[None]:
    return ticking(f"{doing if wanted.apply else 'planning'} App {wanted.app.full_name}")


def _exit_code(outcome: AppOutcome) -> int:
    from kvestigate.app.model import Action

    bad = {it.action for it in outcome.steps if not it.action.good} - {Action.SKIP}
    if bad == {Action.CONFLICT}:
        return EXIT_CONFLICT
    if bad == {Action.LEAVE}:
        return EXIT_TIMEOUT
    return EXIT_FAILED if outcome.failed else EXIT_OK

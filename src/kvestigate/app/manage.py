"""Bringing Apps up and down, on whichever target they have, and writing down what came of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from kvestigate.app import hosts, pods
from kvestigate.app.diff import Drift, compare
from kvestigate.app.digest import spec_hash
from kvestigate.app.fence import Fence
from kvestigate.app.model import AppOutcome, Prepared
from kvestigate.app.shards import Place
from kvestigate.app.spec import AppPhase, AppSpec, Target
from kvestigate.app.status import RecordedStatus, status_on, write_status
from kvestigate.app.target import ResolvedTarget, pick_target
from kvestigate.client.access import Access
from kvestigate.errors import Conflict, KvestigateError
from kvestigate.kube import times
from kvestigate.operation import Context


@dataclass(frozen=True, slots=True)
class AppOptions:
    app: AppSpec
    directory: Path = Path()
    """Where the `local` of sources is relative to."""
    force_conflicts: bool = False
    """Take over fields that other managers own."""
    timeout: float = 60.0
    """Seconds until what is removed must be gone."""
    nodes: tuple[str, ...] | None = None
    """Where its pods may be, if within a cyberspace that has a say in it."""


def _fence(context: Context, options: AppOptions) -> Fence:
    return Fence(context.owner, options.nodes)


async def up(context: Context, options: AppOptions) -> AppOutcome:
    """Make it so that the App runs as it says; where it does, nothing is done.

    What was recorded stays as it was if the plan cannot be carried out.
    """
    spec, access = options.app, context.access
    chosen = pick_target(spec)
    recorded = recorded_here(access, spec)
    _check_holder(spec, recorded, context.owner)
    _check_moved(spec, chosen, recorded)
    if chosen.target is Target.WORKSPACE:
        prepared = await hosts.up(Place(context, spec, options.directory))
    else:
        prepared = await pods.up(
            access,
            spec,
            _fence(context, options),
            force_conflicts=options.force_conflicts,
            timeout=options.timeout,
        )
    plan = _planned(spec, chosen, prepared)
    if not context.apply or plan.failed:
        return plan
    return await _Record(access, spec, chosen.target, context.owner).applied(plan, prepared)


async def down(context: Context, options: AppOptions) -> AppOutcome:
    """Remove what there is of the App. What was recorded counts: that is what was applied."""
    access = context.access
    recorded = recorded_here(access, options.app)
    _check_holder(options.app, recorded, context.owner)
    spec, chosen = options.app, None
    if recorded is not None and recorded.phase is not AppPhase.DOWN:
        spec = recorded.app
        chosen = ResolvedTarget(recorded.target, (f"it was applied {recorded.recorded_at}",))
    chosen = chosen or replace(pick_target(spec), caveats=())
    if chosen.target is Target.WORKSPACE:
        prepared = await hosts.down(Place(context, spec))
    else:
        fence = _fence(context, options)
        prepared = await pods.down(access, spec, fence, timeout=options.timeout)
    plan = _planned(spec, chosen, prepared)
    if not context.apply or (recorded is None and not plan.steps):
        return plan
    record = _Record(access, spec, chosen.target, context.owner)
    outcome = replace(plan, applied=True, steps=await prepared.carry_out())
    record.conclude(outcome, AppPhase.DOWN)
    return outcome


async def drift(context: Context, options: AppOptions) -> Drift:
    """Whether the App changed since it was applied, and what `up` would do now."""
    plan = await up(replace(context, apply=False), options)
    return Drift(compare(options.app, recorded_here(context.access, options.app)), plan)


def recorded_here(access: Access, spec: AppSpec) -> RecordedStatus | None:
    """What was recorded of the App on this cluster."""
    return status_on(spec.metadata.namespace, spec.metadata.name, str(access.server))


def _check_holder(spec: AppSpec, recorded: RecordedStatus | None, holder: str) -> None:
    """What is counted and recorded in a cyberspace is not changed behind its back."""
    if recorded is None or recorded.phase is AppPhase.DOWN:
        return
    if recorded.holder != holder:
        where = f"in the name of {recorded.holder}" if recorded.holder else "in no cyberspace"
        raise Conflict(
            f"App {spec.full_name} was brought up {where}",
            hint="give the --cyberspace and --identity that it was brought up with"
            if recorded.holder
            else "take it down first, or leave out --cyberspace",
        )


def _check_moved(spec: AppSpec, chosen: ResolvedTarget, recorded: RecordedStatus | None) -> None:
    """An App is not left behind where it was, nor is what it kept there removed unasked."""
    if recorded is None or recorded.phase is AppPhase.DOWN:
        return
    before = _places(recorded.app, recorded.target)
    after = _places(spec, chosen.target)
    if left := [place for place in before if place not in after]:
        raise Conflict(
            f"App {spec.full_name} is {left[0]} already, and would be {' and '.join(after)}",
            hint="take it down first: kvestigate app down SPEC, which removes it from there",
        )


def _places(spec: AppSpec, target: Target) -> list[str]:
    if target is Target.K8S:
        return ["in pods"]
    root = f" in {spec.workspace.root}" if spec.workspace.root else ""
    return [f"on {node}{root}" for node in spec.nodes]


def _planned(spec: AppSpec, chosen: ResolvedTarget, prepared: Prepared) -> AppOutcome:
    return AppOutcome(
        namespace=spec.metadata.namespace,
        name=spec.metadata.name,
        target=chosen.target,
        reasons=chosen.reasons,
        caveats=chosen.caveats,
        spec_hash=spec_hash(spec),
        applied=False,
        steps=prepared.steps,
    )


@dataclass(frozen=True, slots=True)
class _Record:
    """How one `up` or `down` is written down."""

    access: Access
    spec: AppSpec
    target: Target
    holder: str

    async def applied(self, plan: AppOutcome, prepared: Prepared) -> AppOutcome:
        """Carry a plan out. That it was begun is written down first: we may not live to tell."""
        outcome = replace(plan, applied=True)
        if plan.changes_anything:
            self.write(AppPhase.APPLYING)
            try:
                outcome = replace(outcome, steps=await prepared.carry_out())
            except KvestigateError as error:
                self.write(AppPhase.FAILED, error.message)
                raise
        self.conclude(outcome, AppPhase.UP)
        return outcome

    def conclude(self, outcome: AppOutcome, reached: AppPhase) -> None:
        wrong = [f"{step.subject}: {step.reason}" for step in outcome.steps if not step.action.good]
        self.write(AppPhase.FAILED if wrong else reached, "; ".join(wrong))

    def write(self, phase: AppPhase, message: str = "") -> None:
        write_status(
            RecordedStatus(
                namespace=self.spec.metadata.namespace,
                name=self.spec.metadata.name,
                target=self.target,
                spec_hash=spec_hash(self.spec),
                phase=phase,
                recorded_at=times.text(datetime.now(UTC).timestamp()),
                app=self.spec,
                server=str(self.access.server),
                context=self.access.context,
                message=message,
                holder=self.holder,
            )
        )

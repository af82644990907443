"""Apps within a cyberspace: the same constraints and quotas, in the same record.

Bringing Apps up stays the operator's. Where they say in whose name, workspaces count as that
identity's, and what is done is recorded where agents' requests are.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from kvestigate.app import operations
from kvestigate.app.digest import spec_hash
from kvestigate.app.manage import AppOptions
from kvestigate.app.model import AppOutcome
from kvestigate.app.operations import DOWN
from kvestigate.app.spec import AppSpec
from kvestigate.cybernet import policy
from kvestigate.cybernet.bodies import Answer
from kvestigate.cybernet.gateway import Caller
from kvestigate.cybernet.loading import Loaded
from kvestigate.cybernet.quotas import owner_of
from kvestigate.cybernet.refusals import Refused
from kvestigate.cybernet.serving import gateway
from kvestigate.errors import KvestigateError
from kvestigate.operation import NOTHING, Context, Operation, Touched

_STEPS = "steps"
"""Why it is recorded as failed when some of its steps did; the outcome tells which."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A cyberspace, and in whose name an App is in it."""

    loaded: Loaded
    identity: str

    @property
    def holder(self) -> str:
        return owner_of(self.loaded.space.metadata.name, self.identity)

    async def run(
        self, operation: Operation[AppOptions, AppOutcome], context: Context, options: AppOptions
    ) -> AppOutcome:
        """Run an operation on an App, if the cyberspace has a place for all that it makes."""
        context = replace(context, owner=self.holder)
        options = replace(options, nodes=self.loaded.space.hosts.allow_names)
        if not context.apply:
            if operation is not DOWN:
                self._check(options)
            return await operation.run(context, options)
        return await self._recorded(operation, context, options)

    def _check(self, options: AppOptions) -> None:
        """What a plan can already be refused for."""
        space, app = self.loaded.space, options.app
        uses = operations.touches(options).workspaces
        for use in uses:
            policy.check_place(space, use)
            policy.check_new_workspace(space.workspace, use)
        if not uses:
            policy.check_app(space, app.metadata.name, app.resources.gpu)

    async def _recorded(
        self, operation: Operation[AppOptions, AppOutcome], context: Context, options: AppOptions
    ) -> AppOutcome:
        touched = operations.touches(options) if operation is not DOWN else NOTHING
        in_pods = options.app if operation is not DOWN and not touched.workspaces else None
        done: list[AppOutcome] = []

        async def carried_out() -> Answer:
            done.append(await operation.run(context, options))
            if operation is DOWN:  # what is gone is known when it is counted again
                with suppress(KvestigateError):
                    await opened.ledger.reconcile()
            if wrong := [
                f"{step.subject}: {step.reason}" for step in done[0].steps if not step.action.good
            ]:
                raise Refused("; ".join(wrong), _STEPS)
            return Answer(None, opened.room)

        async with gateway(self.loaded, context.access, context.via) as opened:
            caller = Caller(self.identity, "command line")
            parameters = _parameters(options.app, touched)
            outcome = await opened.admit(
                caller, operation.name, parameters, touched, carried_out, in_pods
            )
        if outcome.refusal is not None and outcome.refusal.reason != _STEPS:
            raise outcome.refusal
        return done[0]


def _parameters(spec: AppSpec, touched: Touched) -> dict[str, object]:
    """What is recorded of it."""
    return {
        "app": spec.full_name,
        "spec_hash": spec_hash(spec),
        "command": list(spec.command),
        "workspaces": [f"{use.name} on {use.node}" for use in touched.workspaces],
    }

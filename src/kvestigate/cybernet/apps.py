"""Apps within a cyberspace: the same constraints and quotas, in the same record.

Bringing Apps up stays the operator's. Where they say in whose name, workspaces count as that
identity's, and what is done is recorded where agents' requests are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from kvestigate.app import manage
from kvestigate.app.digest import spec_hash
from kvestigate.app.launch import compile_to_hosts
from kvestigate.app.manage import AppOptions
from kvestigate.app.model import AppOutcome
from kvestigate.app.spec import AppSpec, Target
from kvestigate.app.target import pick_target
from kvestigate.client.access import Access
from kvestigate.cybernet import policy
from kvestigate.cybernet.bodies import Answer
from kvestigate.cybernet.gateway import Caller
from kvestigate.cybernet.loading import Loaded
from kvestigate.cybernet.quotas import owner_of
from kvestigate.cybernet.refusals import Refused
from kvestigate.cybernet.serving import gateway
from kvestigate.errors import KvestigateError
from kvestigate.workspace.spec import WorkspaceSpec

_STEPS = "steps"
"""Why it is recorded as failed when some of its steps did; the outcome tells which."""

Act = Callable[[Access, AppOptions], Awaitable[AppOutcome]]


@dataclass(frozen=True, slots=True)
class Gate:
    """A cyberspace, and in whose name an App is in it."""

    loaded: Loaded
    identity: str

    @property
    def holder(self) -> str:
        return owner_of(self.loaded.space.metadata.name, self.identity)

    async def up(self, access: Access, options: AppOptions) -> AppOutcome:
        """As `manage.up`, if the cyberspace has a place for all that it makes."""
        space, app = self.loaded.space, options.app
        workspaces = _workspaces(app)
        in_pods = None if workspaces else app
        if not options.apply:
            for spec in workspaces:
                policy.check_place(space, spec)
                policy.check_new_workspace(space.workspace, spec)
            if in_pods is not None:
                policy.check_app(space, app.metadata.name, app.resources.gpu)
        return await self._through("app.up", access, options, workspaces, manage.up, in_pods)

    async def down(self, access: Access, options: AppOptions) -> AppOutcome:
        return await self._through("app.down", access, options, (), manage.down, None)

    async def _through(
        self,
        name: str,
        access: Access,
        options: AppOptions,
        workspaces: tuple[WorkspaceSpec, ...],
        act: Act,
        in_pods: AppSpec | None,
    ) -> AppOutcome:
        nodes = self.loaded.space.hosts.allow_names
        held = replace(options, holder=self.holder, nodes=nodes)
        if not options.apply:
            return await act(access, held)
        done: list[AppOutcome] = []

        async def carried_out() -> Answer:
            done.append(await act(access, held))
            if act is manage.down:  # what is gone is known when it is counted again
                with suppress(KvestigateError):
                    await opened.ledger.count()
            if wrong := [
                f"{it.subject}: {it.reason}" for it in done[0].steps if not it.action.good
            ]:
                raise Refused("; ".join(wrong), _STEPS)
            return Answer(None, opened.room)

        async with gateway(self.loaded, access, options.via) as opened:
            caller = Caller(self.identity, "command line")
            told = _told(options.app, workspaces)
            outcome = await opened.admit(caller, name, told, workspaces, carried_out, in_pods)
        if outcome.refusal is not None and outcome.refusal.reason != _STEPS:
            raise outcome.refusal
        return done[0]


def _workspaces(spec: AppSpec) -> tuple[WorkspaceSpec, ...]:
    """What it needs on hosts; in pods it needs none."""
    if pick_target(spec).target is not Target.WORKSPACE:
        return ()
    return tuple(it.workspace for it in compile_to_hosts(spec).shards)


def _told(spec: AppSpec, workspaces: tuple[WorkspaceSpec, ...]) -> dict[str, object]:
    """What is recorded of it."""
    return {
        "app": spec.full_name,
        "spec_hash": spec_hash(spec),
        "command": list(spec.command),
        "workspaces": [f"{it.name} on {it.node}" for it in workspaces],
    }

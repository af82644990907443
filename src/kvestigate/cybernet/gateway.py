"""The one way in: authorize, carry out, record. Every front calls `Gateway.call`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from kvestigate.aio.clock import Clock
from kvestigate.app.spec import AppSpec
from kvestigate.client.access import Access
from kvestigate.cybernet import policy
from kvestigate.cybernet.audit_log import AuditLog, Record, masked
from kvestigate.cybernet.bodies import Answer, Room
from kvestigate.cybernet.inquiries import app_holding, capacity_of, discovery, workspace_on
from kvestigate.cybernet.ledger import Ledger
from kvestigate.cybernet.parameters import options_of, schema
from kvestigate.cybernet.quotas import Holding, Usage, owner_of
from kvestigate.cybernet.refusals import (
    DENIALS,
    Malformed,
    NoSuchThing,
    Refused,
    TookTooLong,
    Unavailable,
    from_failure,
)
from kvestigate.cybernet.spec import Cyberspace
from kvestigate.cybernet.tokens import tags_of
from kvestigate.errors import KvestigateError
from kvestigate.kube.times import micro_text
from kvestigate.node_access.model import NodeAccess
from kvestigate.node_access.reach import DEFAULT
from kvestigate.operation import NOTHING, Context, Operation, Touched, Use, WorkspaceUse
from kvestigate.workspace.uploads import Upload

_log = logging.getLogger(__name__)

DEADLINE = 900.0
"""Seconds that an operation may take."""
MOST_AT_ONCE = 64
"""Requests that are being carried out; more are told to come back."""


@dataclass(frozen=True, slots=True)
class Caller:
    identity: str
    """Proved; empty if it was not."""
    remote: str
    """Where the request came from: `127.0.0.1:53122`, `stdio`"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a request: either a result, which the front closes, or why there is none."""

    result: Answer | None = None
    refusal: Refused | None = None


@dataclass(slots=True)
class _Note:
    """What is known of a request while it is carried out, for its record."""

    touched: Touched = NOTHING


class Gateway:
    """Offers some of the operations on one cluster to the identities of one cyberspace."""

    def __init__(
        self,
        space: Cyberspace,
        operations: Mapping[str, Operation[Any, Any]],
        access: Access,
        audit: AuditLog,
        clock: Clock,
        via: NodeAccess = DEFAULT,
    ) -> None:
        self.space = space
        self.operations = operations
        self.ledger = Ledger(space, discovery(access, via))
        self.room = Room()
        """For the files in requests."""
        self._access = access
        self._via = via
        self._defaults = policy.agent_defaults(space.workspace)
        self._audit = audit
        self._clock = clock
        self._running: set[asyncio.Task[Outcome]] = set()

    def schema(self, operation: Operation[Any, Any]) -> dict[str, Any]:
        """JSON Schema of what an agent may say to it here."""
        return schema(operation, self._defaults)

    async def call(self, caller: Caller, name: str, parameters: Any) -> Outcome:
        """Carry out an operation; whoever stops waiting for it does not stop it.

        A client that leaves must not leave half a workspace behind, nor a request unrecorded.
        Files among the parameters are closed when it is done.
        """
        act = partial(self._authorized, caller, name, parameters)
        work = self._recorded(caller, name, parameters, act)
        task = asyncio.get_running_loop().create_task(work, name=f"cybernet/{name}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        for file in _files(parameters):
            task.add_done_callback(partial(_close, file))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_unwanted)
            raise

    async def admit(
        self,
        caller: Caller,
        name: str,
        parameters: Any,
        touched: Touched,
        act: Callable[[], Awaitable[Answer]],
        in_pods: AppSpec | None = None,
    ) -> Outcome:
        """Carry out what an operator wants in the name of `caller`, by the same rules.

        The workspaces that it needs, or the pods, are within the constraints and quotas, and it
        is recorded. An operator may name files and directories of their own.
        """
        owner = owner_of(self.space.metadata.name, caller.identity)

        async def within(note: _Note) -> Answer:
            note.touched = touched
            async with AsyncExitStack() as stack:
                for use in touched.workspaces:
                    policy.check_place(self.space, use)
                    await stack.enter_async_context(self._room_for(use, owner))
                if in_pods is not None:
                    policy.check_app(self.space, in_pods.metadata.name, in_pods.resources.gpu)
                    wanted = app_holding(in_pods, owner)
                    await stack.enter_async_context(self.ledger.promised(wanted))
                return await act()

        return await self._recorded(caller, name, parameters, within)

    async def refuse(self, caller: Caller, name: str, refusal: Refused) -> Refused:
        """Record a request that a front has turned away; what it is to be answered with."""
        return await self._record(caller, name, None, NOTHING, refusal, 0.0, None) or refusal

    async def close(self, grace: float = 10.0) -> None:
        """Wait for what is being carried out; what is not done then is broken off."""
        if self._running:
            _, late = await asyncio.wait(set(self._running), timeout=grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._audit.close()

    async def _recorded(
        self,
        caller: Caller,
        name: str,
        parameters: Any,
        act: Callable[[_Note], Awaitable[Answer]],
    ) -> Outcome:
        started, note = time.perf_counter(), _Note()
        try:
            await self._audit.ready()
        except Unavailable as refusal:
            return Outcome(refusal=refusal)
        try:
            if len(self._running) > MOST_AT_ONCE:
                raise Unavailable(
                    "the gateway is busy: too many operations are running", hint="try again"
                )
            outcome = Outcome(await act(note))
        except KvestigateError as failure:
            outcome = Outcome(refusal=from_failure(failure))
        except asyncio.CancelledError:  # we are told to stop, and it took longer than we may wait
            broken = Unavailable("the gateway stopped before the operation ended", "stopped")
            known = self.ledger.known
            await self._record(caller, name, parameters, note.touched, broken, 0.0, known)
            raise
        except Exception as error:  # noqa: BLE001  the top level of a request: it is recorded
            _log.exception("%s failed", name)
            defect = Refused(f"unexpected {type(error).__name__}", "defect")
            outcome = Outcome(refusal=defect)
        duration = time.perf_counter() - started
        unrecorded = await self._record(
            caller,
            name,
            parameters,
            note.touched,
            outcome.refusal,
            duration,
            self.ledger.known,
        )
        if unrecorded is None:
            return outcome
        if outcome.result is not None:
            outcome.result.close()
        return Outcome(refusal=unrecorded)

    async def _record(
        self,
        caller: Caller,
        name: str,
        parameters: Any,
        touched: Touched,
        refusal: Refused | None,
        duration: float,
        usage: Usage | None,
    ) -> Refused | None:
        denied = isinstance(refusal, DENIALS)
        record = Record(
            timestamp=micro_text(self._clock.now()),
            identity=caller.identity,
            tags=tags_of(self.space.tokens, caller.identity),
            remote=caller.remote,
            operation=name[:200],
            parameters=masked(parameters),
            touched=touched,
            decision="deny" if denied else "allow",
            reason="" if refusal is None else f"{refusal.reason}: {refusal.message}"[:1000],
            outcome="denied" if denied else "error" if refusal else "ok",
            duration_ms=round(duration * 1000, 3),
            quota=usage,
        )
        try:
            await self._audit.write(record)
        except Unavailable as unrecorded:
            return unrecorded
        return None

    async def _authorized(self, caller: Caller, name: str, parameters: Any, note: _Note) -> Answer:
        operation = policy.allowed(name, self.operations)
        if not isinstance(parameters, dict):
            raise Malformed("the parameters are not a JSON object", hint='send {"name": "nodes"}')
        owner = owner_of(self.space.metadata.name, caller.identity)
        options = options_of(operation, parameters, self._defaults)
        note.touched = operation.touches(options)
        options = policy.confined(self.space, operation, options)
        note.touched = touched = operation.touches(options)
        policy.check_touched(self.space, touched)
        async with AsyncExitStack() as stack:
            for use in touched.workspaces:
                await self._check_workspace(stack, use, touched.gpus, owner)
            result = await self._carried_out(operation, options, owner)
            answer = Answer(operation.shown(result, owner), self.room)
        for use in touched.workspaces:
            if use.use is Use.REMOVE:
                self.ledger.gone((use.node, use.name))
        return answer

    async def _check_workspace(
        self, stack: AsyncExitStack, use: WorkspaceUse, gpus: tuple[int, ...], owner: str
    ) -> None:
        if use.use is Use.CREATE:
            await stack.enter_async_context(self._room_for(use, owner))
            return
        existing = await workspace_on(self._access, self._via, use.node, use.name)
        if existing is not None:
            policy.check_owner(existing.owner, owner, use.name)
            policy.check_gpus(gpus, existing.gpus)
        elif use.use is not Use.COMPARE:
            raise NoSuchThing(
                f"there is no workspace {use.name!r} on node {use.node!r}",
                "ownership",
                hint="workspace.create makes one",
            )

    @asynccontextmanager
    async def _room_for(self, use: WorkspaceUse, owner: str) -> AsyncIterator[None]:
        """Reserve what a new workspace needs; the reservation holds while it is made."""
        policy.check_new_workspace(self.space.workspace, use)
        wanted = Holding(use.node, use.name, owner, use.gpus, use.tmpfs_bytes)
        async with self.ledger.promised(wanted) as exists:
            required = self.space.hosts.require
            if required and not exists:
                capacity = await capacity_of(self._access, use.node)
                policy.check_capacity(required, use.node, capacity)
            yield

    async def _carried_out(self, operation: Operation[Any, Any], options: Any, owner: str) -> Any:
        context = Context(
            lambda: self._access, apply=True, owner=owner, rules=self.space.runs, via=self._via
        )
        try:
            async with asyncio.timeout(DEADLINE):
                return await operation.run(context, options)
        except TimeoutError:
            raise TookTooLong(
                f"{operation.name} took more than {DEADLINE:.0f} seconds", "deadline"
            ) from None


def _unwanted(task: asyncio.Task[Outcome]) -> None:
    if not task.cancelled() and (result := task.result().result) is not None:
        result.close()


def _files(value: Any) -> Iterator[Upload]:
    """Wherever they are: who sends one to the wrong place does not keep it there."""
    if isinstance(value, Upload):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _files(inner)


def _close(file: Upload, _: asyncio.Task[Outcome]) -> None:
    file.close()

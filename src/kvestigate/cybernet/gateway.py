"""The one way in: authorize, carry out, record. Every front calls `Gateway.call`."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec

from kvestigate.aio.clock import Clock
from kvestigate.app.spec import AppSpec
from kvestigate.client.access import Access
from kvestigate.cybernet import policy
from kvestigate.cybernet.answers import leaving_answer
from kvestigate.cybernet.audit_log import AuditLog, Record, Stage, masked
from kvestigate.cybernet.bodies import Answer, Room
from kvestigate.cybernet.entries import Entry, check_settled
from kvestigate.cybernet.fitting import PARAMETER, wish_of
from kvestigate.cybernet.inquiries import (
    app_holding,
    capacities_of,
    capacity_of,
    hosts_of,
    ledger_of,
    lift_left_cordons,
)
from kvestigate.cybernet.leaving import redacted_text
from kvestigate.cybernet.narrowing import rules_of
from kvestigate.cybernet.parameters import options_of, schema
from kvestigate.cybernet.quotas import Holding, Usage, owner_of
from kvestigate.cybernet.refusals import (
    DENIALS,
    RETRY_SECONDS,
    Malformed,
    NoSuchThing,
    Refused,
    TookTooLong,
    Unavailable,
    busy,
    from_failure,
    too_many_failures,
)
from kvestigate.cybernet.spec import Cyberspace, TokenSpec
from kvestigate.cybernet.standing import info_operation
from kvestigate.cybernet.tokens import bearer, identify, tags_of
from kvestigate.errors import KvestigateError
from kvestigate.kube.redaction import masked_text
from kvestigate.kube.times import micro_text
from kvestigate.node_access.model import NodeAccess
from kvestigate.node_access.reach import DEFAULT
from kvestigate.operation import NOTHING, Context, Operation, Touched, Use, WorkspaceUse
from kvestigate.workspace.operations import DESTROY
from kvestigate.workspace.options import DestroyOptions
from kvestigate.workspace.spec import WorkspaceSpec
from kvestigate.workspace.uploads import Upload

_log = logging.getLogger(__name__)

DEADLINE = 900.0
"""Seconds that an operation may take."""
MOST_AT_ONCE = 64
"""Requests that are being carried out; more are told to come back."""
MOST_OF_ONE = 32
"""The same, of one identity: what it keeps waiting leaves room for others."""
MOST_FAILURES = 30
"""Requests without a known token from one address within a minute that are told why."""


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


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What the ledger and the hosts said of each other."""

    repairs: tuple[str, ...]
    expired: tuple[str, ...]
    """Workspaces whose lease has ended."""


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
        tokens: Callable[[], Sequence[TokenSpec]] | None = None,
    ) -> None:
        self.space = space
        self._tokens = tokens or (lambda: space.tokens)
        self.ledger = ledger_of(space, access, via)
        read_capacities = partial(capacities_of, access)
        info = info_operation(space, operations, self.ledger.entries, read_capacities)
        self.operations = {info.name: info, **operations}
        self.room = Room()
        """For the files in requests."""
        self._access = access
        self._via = via
        self._defaults = policy.agent_defaults(space.workspace)
        self._rules = rules_of(space)
        self._audit = audit
        self._clock = clock
        self._running: set[asyncio.Task[Outcome]] = set()
        self._turns: Counter[str] = Counter()

    def identify(self, authorization: Sequence[str]) -> str:
        """Who asks, by the values of `Authorization`; Unauthenticated if nobody known."""
        return identify(self._tokens(), bearer(authorization), self._clock.now())

    def schema(self, operation: Operation[Any, Any]) -> dict[str, Any]:
        """JSON Schema of what an agent may say to it here."""
        return schema(operation, self._defaults, self._rules)

    async def call(
        self, caller: Caller, name: str, parameters: Any, budget: int | None = None
    ) -> Outcome:
        """Carry out an operation; whoever stops waiting for it does not stop it.

        The answer has at most `budget` bytes, unless the request asks for another number.

        A client that leaves must not leave half a workspace behind, nor a request unrecorded.
        Files among the parameters are closed when it is done.
        """
        act = partial(self._authorized, caller, name, parameters, budget)
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
                    await stack.enter_async_context(self.ledger.making(wanted))
                return await act()

        return await self._recorded(caller, name, parameters, within)

    async def upkeep(self) -> Upkeep:
        """Compare the ledger with the hosts, repair it, and remove what agents have abandoned."""
        _, repairs, found = await self.ledger.reconcile()
        repairs += await lift_left_cordons(self._access, self._via)
        expired: list[str] = []
        for entry in await self.ledger.abandoned(found):
            refusal = await self._expire(entry)
            what = f"workspace {entry.name!r} of {entry.owner} on node {entry.node!r}"
            if refusal is None:
                expired.append(f"{what} was abandoned and is removed")
            else:
                expired.append(f"{what} is abandoned and could not be removed: {refusal.message}")
        return Upkeep(repairs, tuple(expired))

    async def _expire(self, entry: Entry) -> Refused | None:
        options = DestroyOptions(WorkspaceSpec(entry.name, entry.node))

        async def destroyed(note: _Note) -> Answer:
            note.touched = DESTROY.touches(options)
            async with self.ledger.removing(entry.place):
                return Answer(await self._carried_out(DESTROY, options, entry.owner), self.room)

        caller = Caller(entry.owner.partition("/")[2], "lease")
        outcome = await self._recorded(caller, DESTROY.name, {"workspace": entry.name}, destroyed)
        if outcome.result is not None:
            outcome.result.close()
        return outcome.refusal

    async def refuse(self, caller: Caller, name: str, refusal: Refused) -> Refused:
        """Record a request that a front has turned away; what it is to be answered with.

        It counts as denied whatever the refusal is: nothing was tried.
        """
        outcome = self._outcome(self._begun(caller, name, None), NOTHING, refusal, 0.0, None)
        record = replace(outcome, decision="deny", outcome="denied")
        try:
            if caller.identity:
                await self._audit.write(record)
            elif await self._audit.write_stranger(record) > MOST_FAILURES:
                return too_many_failures()
        except Unavailable as unrecorded:
            return unrecorded
        return refusal

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
        """Carry out `act` between two records: that it will be done, and what became of it."""
        started, note = time.perf_counter(), _Note()
        intent = self._begun(caller, name, parameters)
        try:
            await self._audit.write(intent)
        except Unavailable as refusal:
            refusal.retry_after = RETRY_SECONDS
            return Outcome(refusal=refusal)
        try:
            async with self._turn(caller):
                outcome = Outcome(await act(note))
        except KvestigateError as failure:
            outcome = Outcome(refusal=from_failure(failure))
        except asyncio.CancelledError:  # we are told to stop, and it took longer than we may wait
            broken = Unavailable("the gateway stopped before the operation ended", "stopped")
            await self._record(intent, note, broken, time.perf_counter() - started)
            raise
        except Exception as error:  # noqa: BLE001  the top level of a request: it is recorded
            _log.exception("%s failed", name)
            defect = Refused(f"unexpected {type(error).__name__}", "defect")
            outcome = Outcome(refusal=defect)
        duration = time.perf_counter() - started
        unrecorded = await self._record(intent, note, outcome.refusal, duration)
        if unrecorded is None:
            return outcome
        if outcome.result is not None:
            outcome.result.close()
        return Outcome(refusal=unrecorded)

    @asynccontextmanager
    async def _turn(self, caller: Caller) -> AsyncIterator[None]:
        """Count what an identity has going on; Unavailable if that is too much."""
        if len(self._running) > MOST_AT_ONCE or self._turns[caller.identity] >= MOST_OF_ONE:
            raise busy()
        self._turns[caller.identity] += 1
        try:
            yield
        finally:
            self._turns[caller.identity] -= 1

    async def _record(
        self, intent: Record, note: _Note, refusal: Refused | None, duration: float
    ) -> Refused | None:
        """Write what became of a request; why that was not possible."""
        usage = self.ledger.known
        try:
            await self._audit.write(self._outcome(intent, note.touched, refusal, duration, usage))
        except Unavailable as unrecorded:
            return unrecorded
        return None

    def _begun(self, caller: Caller, name: str, parameters: Any) -> Record:
        return Record(
            id=secrets.token_hex(8),
            stage=Stage.INTENT,
            timestamp=micro_text(self._clock.now()),
            identity=caller.identity,
            tags=self._tags(caller.identity),
            remote=caller.remote,
            operation=masked_text(name[:200]),
            parameters=masked(parameters),
            touched=NOTHING,
            decision="",
            reason="",
            outcome="",
            duration_ms=0.0,
            quota=None,
        )

    def _tags(self, identity: str) -> tuple[str, ...]:
        try:
            return tags_of(self._tokens(), identity)
        except Unavailable:
            return ()

    def _outcome(
        self,
        intent: Record,
        touched: Touched,
        refusal: Refused | None,
        duration: float,
        usage: Usage | None,
    ) -> Record:
        denied = isinstance(refusal, DENIALS)
        reason = "" if refusal is None else f"{refusal.reason}: {refusal.message}"
        return replace(
            intent,
            stage=Stage.OUTCOME,
            timestamp=micro_text(self._clock.now()),
            touched=masked(msgspec.to_builtins(touched)),
            decision="deny" if denied else "allow",
            reason=masked_text(reason[:1000]),
            outcome="denied" if denied else "error" if refusal else "ok",
            duration_ms=round(duration * 1000, 3),
            quota=usage,
        )

    async def _authorized(
        self, caller: Caller, name: str, parameters: Any, budget: int | None, note: _Note
    ) -> Answer:
        operation = policy.allowed(name, self.operations)
        if not isinstance(parameters, dict):
            raise Malformed("the parameters are not a JSON object", hint='send {"name": "nodes"}')
        owner = owner_of(self.space.metadata.name, caller.identity)
        given = {key: value for key, value in parameters.items() if key != PARAMETER}
        wish = wish_of(parameters.get(PARAMETER), budget, self.space.answers.max_budget)
        options = options_of(operation, given, self._defaults)
        note.touched = operation.touches(options)
        options = policy.confined(self.space, operation, options)
        note.touched = touched = operation.touches(options)
        policy.check_touched(self.space, touched)
        async with AsyncExitStack() as stack:
            for use in touched.workspaces:
                await self._check_workspace(stack, use, touched.gpus, owner)
            result = await self._carried_out(operation, options, owner)
        return await leaving_answer(operation, operation.shown(result, owner), wish, self.room)

    async def _check_workspace(
        self, stack: AsyncExitStack, use: WorkspaceUse, gpus: tuple[int, ...], owner: str
    ) -> None:
        if use.use is Use.CREATE:
            await stack.enter_async_context(self._room_for(use, owner))
            return
        place = use.node, use.name
        entry = await self.ledger.entry(place)
        if entry is None:
            if use.use is Use.REMOVE:  # perhaps for the second time, and that is no failure
                await stack.enter_async_context(self.ledger.removing(place))
            if use.use in (Use.COMPARE, Use.REMOVE):
                return
            raise NoSuchThing(
                f"there is no workspace {use.name!r} on node {use.node!r}",
                "ownership",
                hint="workspace.create makes one",
            )
        policy.check_owner(entry.owner, owner, use.name)
        if use.use is not Use.COMPARE:
            check_settled(entry, time.time())
        if entry.devices:
            policy.check_gpus(gpus, entry.devices)
        elif gpus:
            policy.check_borrowed(self.space.workspace, gpus)
            await self.ledger.borrow(place, gpus)
        await self.ledger.attend(entry)
        if use.use is Use.REMOVE:
            await stack.enter_async_context(self.ledger.removing(place))

    @asynccontextmanager
    async def _room_for(self, use: WorkspaceUse, owner: str) -> AsyncIterator[None]:
        """Reserve what a new workspace needs; the reservation holds while it is made."""
        policy.check_new_workspace(self.space.workspace, use)
        hosts = await hosts_of(self._access, self._via)
        required = self.space.hosts.require
        if required and await self.ledger.entry((use.node, use.name)) is None:
            policy.check_capacity(required, use.node, await capacity_of(self._access, use.node))
        hosts.host(use.node)  # nothing is promised on a node that cannot be reached
        wanted = Holding(use.node, use.name, owner, use.gpus, use.tmpfs_bytes)
        async with self.ledger.making(wanted):
            yield

    async def _carried_out(self, operation: Operation[Any, Any], options: Any, owner: str) -> Any:
        context = Context(
            lambda: self._access,
            apply=True,
            owner=owner,
            rules=self.space.runs,
            via=self._via,
            redact=redacted_text,
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

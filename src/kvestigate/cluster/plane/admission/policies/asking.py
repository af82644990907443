"""A write on its way past what users put in it: policies that change it, and webhooks.

Webhooks that change a write are asked one after the other, those that judge it all at once.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol, TypeVar

import msgspec

from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.admission.policies import hooks, matching, replacing
from kvestigate.cluster.plane.admission.policies.hooks import (
    MUTATING,
    VALIDATING,
    Answer,
    Hook,
)
from kvestigate.cluster.plane.admission.policies.mutation import BINDINGS, Mutation
from kvestigate.cluster.plane.admission.policies.review import Review
from kvestigate.cluster.plane.egress.reach import Egress
from kvestigate.cluster.plane.egress.webhooks import CallFailed, Webhooks
from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.errors import ApiError
from kvestigate.kube.patches import json as json_patch
from kvestigate.kube.patches.json import DoesNotApply

_ANSWER_LIMIT = 3 << 20


T = TypeVar("T")


class RunAside(Protocol):
    async def __call__(self, work: Callable[[], T]) -> T:
        """The result of `work`, which is done beside the loop."""


Convert = Callable[[Object, Kind], Awaitable[Object]]
"""An object at the version of a kind, converted by the webhook of its definition."""


def asking(
    write: Write, backends: Egress, random: Random, aside: RunAside, convert: Convert
) -> Asking | None:
    """None if the plane has neither webhooks nor mutating policies."""
    known = write.scene.state.collections
    if MUTATING in known or VALIDATING in known or BINDINGS in known:
        return Asking(write, backends, random, aside, convert)
    return None


class Asking:
    """One write, on its way past the policies and webhooks of its plane."""

    def __init__(
        self, write: Write, backends: Egress, random: Random, aside: RunAside, convert: Convert
    ) -> None:
        """`aside` runs expressions beside the loop."""
        self._aside = aside
        self._write = write
        self._backends = backends
        self._random = random
        self._convert = convert

    async def mutate(self, rules: Callable[[Write], None]) -> bool:
        """Let policies and webhooks change the write's object, or refuse it.

        Once one has, `rules` are put to it anew, and so are those that want to be asked again.
        True if the object may be another one now.
        """
        policies = Mutation(self._write)
        webhooks = [_Asked(hook) for hook in self._chosen(MUTATING)]
        changed = await self._run(policies)
        for position, webhook in enumerate(webhooks):
            webhook.changed = await self._mutate(webhook.hook)
            if webhook.changed:
                changed = True
                for earlier in webhooks[:position]:
                    earlier.again = True
        if not changed:
            return False
        before = msgspec.json.encode(self._write.new) if webhooks else b""
        rules(self._write)
        await self._run(policies, again=True)
        touched = bool(webhooks) and before != msgspec.json.encode(self._write.new)
        for webhook in webhooks:
            if webhook.is_repeated(touched=touched):
                await self._mutate(webhook.hook)
        return True

    async def _run(self, policies: Mutation, *, again: bool = False) -> bool:
        if BINDINGS not in self._write.scene.state.collections:
            return False
        return await self._aside(lambda: policies.run(again=again))

    async def _concern(self, hook: Hook, review: Review) -> matching.Target | None:
        if not hook.conditions:
            return hooks.concern(hook, review)
        return await self._aside(lambda: hooks.concern(hook, review))

    async def validate(self) -> None:
        """Let webhooks refuse the write."""
        chosen = self._chosen(VALIDATING)
        if not chosen:
            return
        review = Review(self._write)
        targets = [(hook, await self._concern(hook, review)) for hook in chosen]
        async with asyncio.TaskGroup() as group:
            verdicts = [
                group.create_task(self._judge(hook, review, target))
                for hook, target in targets
                if target is not None
            ]
        for verdict in verdicts:
            if (refusal := verdict.result()) is not None:
                raise refusal

    def _chosen(self, resource: tuple[str, str]) -> tuple[Hook, ...]:
        known = hooks.hooks(self._write.scene.state, resource)
        return known if known and not matching.exempt(Review(self._write)) else ()

    async def _judge(self, hook: Hook, review: Review, target: matching.Target) -> ApiError | None:
        try:
            answer = await self._ask(hook, review, target, mutates=False)
        except CallFailed as why:
            return None if hook.lenient else hooks.failed(hook, why)
        self._note(hook, answer)
        return None if answer.allowed else hooks.denial(hook, answer.status)

    def _note(self, hook: Hook, answer: Answer) -> None:
        self._write.warnings.extend(answer.warnings)
        for key, value in answer.notes.items():
            self._write.notes.setdefault(f"{hook.name}/{key}", str(value))

    async def _mutate(self, hook: Hook) -> bool | None:
        """True if the webhook changed the object; None if the webhook was not called."""
        review = Review(self._write, early=True)
        target = await self._concern(hook, review)
        if target is None:
            return None
        try:
            answer = await self._ask(hook, review, target, mutates=True)
        except CallFailed as why:
            if hook.lenient:
                return False
            raise hooks.failed(hook, why) from None
        self._note(hook, answer)
        if not answer.allowed:
            raise hooks.denial(hook, answer.status)
        return bool(answer.patch) and await self._patch(hook, review, target[1], answer)

    async def _patch(self, hook: Hook, review: Review, kind: Kind, answer: Answer) -> bool:
        shown, _ = review.shown(kind)
        if shown is None:
            raise hooks.internal(
                f'admission webhook "{hook.name}" attempted to modify the object, which is not '
                "supported for this operation"
            )
        try:
            patched = json_patch.attempt(shown, answer.patch)
        except DoesNotApply as problem:
            raise hooks.internal(f"JSON patch: {problem}") from None
        except ApiError as error:  # what is no patch at all
            raise hooks.internal(error.message) from None
        if self._is_converted(kind):
            kind = self._write.served
            patched = await self._convert(patched, kind)
        return _replace(self._write, kind, patched)

    def _is_converted(self, kind: Kind) -> bool:
        """Whether a webhook of this version sees what another webhook has converted."""
        write = self._write
        return kind.conversion is not None and kind is not write.served and write.shown_as is None

    async def _offer(self, review: Review, kind: Kind) -> None:
        """Convert the objects of a review to the version of a kind."""
        write = self._write
        new = None if write.operation == "DELETE" else await self._convert(write.new, kind)
        old = None if write.old is None else await self._convert(write.old, kind)
        review.offer(kind, new, old)

    async def _ask(
        self, hook: Hook, review: Review, target: matching.Target, *, mutates: bool
    ) -> Answer:
        if self._is_converted(target[1]):
            await self._offer(review, target[1])
        uid = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        data = hooks.question(hook, review, target, uid)
        webhooks = Webhooks(self._backends, self._write.scene.state, self._random)
        try:
            body = await webhooks.post(
                hook.spec["clientConfig"],
                data,
                seconds=hook.spec["timeoutSeconds"],
                limit=_ANSWER_LIMIT,
                agent="kube-apiserver-admission",
            )
        except CallFailed as why:
            raise type(why)(f"failed to call webhook: {why}") from None
        return hooks.understood(hook, uid, body, mutates=mutates)


@dataclass(slots=True)
class _Asked:
    """A webhook that may change a write."""

    hook: Hook
    changed: bool | None = None
    """Whether it did; None if it was not asked."""
    again: bool = False
    """Whether another one has changed the write since."""

    def is_repeated(self, *, touched: bool) -> bool:
        wanted = self.hook.spec.get("reinvocationPolicy") == "IfNeeded"
        return wanted and self.changed is not None and (self.again or touched)


def _replace(write: Write, kind: Kind, patched: Object) -> bool:
    """Take over the object that a webhook returned. True if it differs."""
    judge = kind if write.shown_as is None else write.shown_as.kind
    if wrong := judge.problems(patched).mistyped:
        raise hooks.internal(wrong)
    return replacing.replace(write, kind, patched)

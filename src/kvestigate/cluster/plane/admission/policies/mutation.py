"""MutatingAdmissionPolicies, put to a write.

Each sees what those before it have made of the object, by name; kube-apiserver promises no order.
Once something has changed the object, policies that want to be asked again are, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.admission.policies import (
    bound,
    conditions,
    matching,
    patching,
    replacing,
)
from kvestigate.cluster.plane.admission.policies.bound import Invocation
from kvestigate.cluster.plane.admission.policies.conditions import Unclear
from kvestigate.cluster.plane.admission.policies.patching import Unpatchable
from kvestigate.cluster.plane.admission.policies.review import Review
from kvestigate.cluster.plane.kinds.policies.compilation import Expression, compile_mutating
from kvestigate.errors import ApiError, Forbidden, Invalid

_GROUP = "admissionregistration.k8s.io"
POLICIES = (_GROUP, "mutatingadmissionpolicies")
BINDINGS = (_GROUP, "mutatingadmissionpolicybindings")
_FORBIDDEN = 403


class Mutation:
    """One write, on its way past the policies that change writes."""

    def __init__(self, write: Write) -> None:
        state = write.scene.state
        self._write = write
        self._policies: tuple[bound.Policy, ...] = ()
        if BINDINGS in state.collections and write.operation != "DELETE":
            known, bindings = state.collection(POLICIES), state.collection(BINDINGS)
            self._policies = bound.policies(known, bindings, compile_mutating)
        self._asked: set[tuple[str, ...]] = set()
        """Invocations to be repeated if something changes the object."""

    def run(self, *, again: bool = False) -> bool:
        """Apply the policies to the object, or refuse it. True if the object changed."""
        if not self._policies or (again and not self._asked):
            return False
        review = Review(self._write)
        if matching.exempt(review):
            return False
        chosen = [each for policy in self._policies for each in bound.invocations(policy, review)]
        failures = [(each, each.problem) for each in chosen if each.problem]
        done = False
        for each in chosen:
            if not each.problem and self._applies(each, failures, again=again):
                done |= self._mutate(each, failures)
        refusals = [(each, why) for each, why in failures if not each.policy.lenient]
        if refusals:
            raise _refusal(review, refusals)
        return done

    def _applies(
        self, each: Invocation, failures: list[tuple[Invocation, str]], *, again: bool
    ) -> bool:
        wanted = each.policy.compiled.conditions
        try:
            if wanted and not conditions.hold(wanted, self._values(each)):
                return False
        except Unclear as why:
            failures.append((each, str(why)))
            return False
        if again:
            return each.key in self._asked
        if each.policy.spec["reinvocationPolicy"] == "IfNeeded":
            self._asked.add(each.key)
        return True

    def _mutate(self, each: Invocation, failures: list[tuple[Invocation, str]]) -> bool:
        """Apply the mutations of one policy. True if one was applied."""
        done = False
        mutations = each.policy.spec["mutations"]
        for mutation, expression in zip(mutations, each.policy.compiled.mutations, strict=True):
            try:
                self._patch(each, mutation["patchType"], expression)
                done = True
            except (Unclear, Unpatchable) as why:
                failures.append((each, str(why)))
        return done

    def _patch(self, each: Invocation, patch_type: str, expression: Expression) -> None:
        value = conditions.run(expression, self._values(each))
        address, kind = each.target
        shown, _ = self._review().shown(kind)
        assert shown is not None, "only deletions have no object"
        shown_as = self._write.shown_as
        if patch_type == "JSONPatch":
            made = patching.patched(value, shown, kind if shown_as is None else shown_as.kind)
        else:
            # Kinds that are only seen at subresources of others have no schema to merge by.
            own = address.group, address.version
            typed = shown_as is None and own == (kind.resource.group, kind.resource.version)
            made = patching.configured(value, shown, kind if typed else None)
        if made is not None:
            replacing.replace(self._write, kind, made)

    def _values(self, each: Invocation) -> conditions.Values:
        variables = each.policy.compiled.variables
        return conditions.values(self._review(), each.target, variables, each.param)

    def _review(self) -> Review:
        """A review of the write with its present object."""
        return Review(self._write, early=True)


def _refusal(review: Review, refusals: list[tuple[Invocation, str]]) -> ApiError:
    messages = [
        f"policy '{each.policy.name}' with binding '{each.binding_name}' denied request: {why}"
        for each, why in refusals
    ]
    details: dict[str, Any] = dict(_named(review))
    details["causes"] = [{"message": message} for message in messages]
    misconfigured = bool(refusals[0][0].problem)
    refusal = Forbidden if misconfigured else Invalid
    return refusal(messages[0], details=details, code=_FORBIDDEN)


def _named(review: Review) -> Iterator[tuple[str, str]]:
    address = review.address
    yield "name", review.shown_name
    if address.group:
        yield "group", address.group
    yield "kind", address.resource

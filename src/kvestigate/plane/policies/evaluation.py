"""ValidatingAdmissionPolicies, put to a write.

A policy says what must hold, a binding where and with which parameters, and what happens where it
does not. Policies are compiled once for each distinct set of them: states share their collections.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kvestigate import errors
from kvestigate.errors import ApiError
from kvestigate.plane import objects
from kvestigate.plane.admission.interface import Write
from kvestigate.plane.kinds.kind import Object
from kvestigate.plane.policies import conditions, matching, parameters
from kvestigate.plane.policies.compilation import Compiled, Expression, compile_policy
from kvestigate.plane.policies.conditions import Unclear, Values
from kvestigate.plane.policies.parameters import Misconfigured
from kvestigate.plane.policies.review import Review
from kvestigate.plane.store.model import Item
from kvestigate.plane.store.state import Collection

_GROUP = "admissionregistration.k8s.io"
POLICIES = (_GROUP, "validatingadmissionpolicies")
BINDINGS = (_GROUP, "validatingadmissionpolicybindings")
_POLICY_SETS = 64

_REASONS: dict[str, type[ApiError]] = {
    "Forbidden": errors.Forbidden,
    "Invalid": errors.Invalid,
    "RequestEntityTooLarge": errors.RequestEntityTooLarge,
    "Unauthorized": errors.Unauthorized,
}


@dataclass(frozen=True, slots=True)
class Policy:
    name: str
    spec: Object
    bindings: tuple[Object, ...]
    compiled: Compiled

    @property
    def lenient(self) -> bool:
        """Whether what cannot be told is let through."""
        return bool(self.spec["failurePolicy"] == "Ignore")


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that a policy has against a write."""

    message: str
    reason: str = "Invalid"


def judge(write: Write) -> None:
    """Refuse what a policy denies; the first one that does is told."""
    state = write.scene.state
    if BINDINGS not in state.collections:
        return
    policies = _policies(state.collection(POLICIES), state.collection(BINDINGS))
    if not policies:
        return
    review = Review(write)
    if matching.exempt(review):
        return
    for refusal in [each for policy in policies for each in _refusals(policy, review)]:
        raise refusal


@lru_cache(maxsize=_POLICY_SETS)
def _policies(policies: Collection, bindings: Collection) -> tuple[Policy, ...]:
    """Those that are bound, compiled."""
    bound: dict[str, list[Object]] = {}
    for item in bindings.items():
        binding = objects.read(item)
        bound.setdefault(binding["spec"]["policyName"], []).append(binding)
    return tuple(
        _policy(item, tuple(bound[item.name])) for item in policies.items() if item.name in bound
    )


def _policy(item: Item, bindings: tuple[Object, ...]) -> Policy:
    spec = objects.read(item)["spec"]
    return Policy(item.name, spec, bindings, compile_policy(spec))


def _refusals(policy: Policy, review: Review) -> Iterator[ApiError]:
    target = matching.find(policy.spec["matchConstraints"], "resourceRules", review)
    if target is None:
        return
    for binding in policy.bindings:
        scope = binding["spec"].get("matchResources")
        if scope is not None and matching.find(scope, "resourceRules", review) is None:
            continue
        try:
            params = parameters.collect(policy.spec, binding["spec"], review)
        except Misconfigured as why:
            if not policy.lenient:
                told = f"failed to configure binding: {why}"
                yield _refusal(policy, binding, review, Failure(told))
            continue
        for param in params:
            values = conditions.values(review, target, policy.compiled.variables, param)
            for failure in _failures(policy, values):
                yield from _acted_upon(policy, binding, review, failure)


def _acted_upon(
    policy: Policy, binding: Object, review: Review, failure: Failure
) -> Iterator[ApiError]:
    for action in binding["spec"]["validationActions"]:
        if action == "Deny":
            yield _refusal(policy, binding, review, failure)
        elif action == "Warn":
            review.write.warnings.append(
                f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding "
                f"'{binding['metadata']['name']}': {failure.message}"
            )


def _refusal(policy: Policy, binding: Object, review: Review, failure: Failure) -> ApiError:
    told = (
        f"ValidatingAdmissionPolicy '{policy.name}' with binding "
        f"'{binding['metadata']['name']}' denied request: {failure.message}"
    )
    address = review.address
    name = review.shown_name
    details: dict[str, Any] = {"name": name, "group": address.group, "kind": address.resource}
    qualified = f"{address.resource}.{address.group}"
    if not address.group:
        del details["group"]
        qualified = address.resource
    return _REASONS[failure.reason](
        f'{qualified} "{name}" is forbidden: {told}',
        details={**details, "causes": [{"message": told}]},
    )


def _failures(policy: Policy, values: Values) -> Iterator[Failure]:
    for condition in policy.compiled.conditions:
        held = _held(policy, condition, values)
        if isinstance(held, Failure):
            yield held
        if held is not True:
            return
    told = policy.spec.get("validations") or ()
    for position, expression in enumerate(policy.compiled.validations):
        held = _held(policy, expression, values)
        if isinstance(held, Failure):
            yield held
        elif held is False:
            message = _message(told[position], policy.compiled.messages[position], values)
            yield Failure(message, told[position].get("reason") or "Invalid")
    for expression in policy.compiled.annotations:
        held = _held(policy, expression, values)
        if isinstance(held, Failure):
            yield held


def _held(policy: Policy, expression: Expression, values: Values) -> bool | Failure | None:
    """The value of a condition; None where it has none and nobody minds."""
    try:
        return bool(conditions.run(expression, values))
    except Unclear as why:
        return None if policy.lenient else Failure(str(why))


def _message(told: Object, expression: Expression | None, values: Values) -> str:
    if expression is not None:
        try:
            made = str(conditions.run(expression, values)).strip()
        except Unclear:
            made = ""
        if made and "\n" not in made:
            return made
    message = (told.get("message") or "").strip()
    return message or f"failed expression: {told['expression'].strip()}"

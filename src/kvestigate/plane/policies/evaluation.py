"""ValidatingAdmissionPolicies, put to a write.

A policy says what must hold, a binding where and with which parameters, and what happens where it
does not. Policies are compiled once for each distinct set of them: states share their collections.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

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
_FAILED = "validation.policy.admission.k8s.io/validation_failure"
"""Where the audit log keeps what a policy had against a request."""

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
    position: int = 0
    """Of the expression among those of its policy."""


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
            applies = _applies(policy, values)
            failures = _failures(policy, values) if applies is True else ()
            for failure in (applies,) if isinstance(applies, Failure) else failures:
                yield from _acted_upon(policy, binding, review, failure)
            for failure in _annotate(policy, review, values) if applies is True else ():
                yield _refusal(policy, binding, review, failure)


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
        else:
            told = _audited(policy, binding, failure)
            review.write.notes.setdefault(_FAILED, told)


def _audited(policy: Policy, binding: Object, failure: Failure) -> str:
    told = {
        "message": failure.message,
        "policy": policy.name,
        "binding": binding["metadata"]["name"],
        "expressionIndex": failure.position,
        "validationActions": binding["spec"]["validationActions"],
    }
    return msgspec.json.encode([told]).decode()


def _annotate(policy: Policy, review: Review, values: Values) -> Iterator[Failure]:
    """Note for the audit log what the policy wants noted; what has no value is told of."""
    told = policy.spec.get("auditAnnotations") or ()
    for each, expression in zip(told, policy.compiled.annotations, strict=True):
        try:
            value = conditions.run(expression, values)
        except Unclear as why:
            if not policy.lenient:
                yield Failure(str(why))
            continue
        if isinstance(value, str) and (value := value.strip()):
            _add(review.write.notes, f"{policy.name}/{each['key']}", value)


def _add(notes: dict[str, str], key: str, value: str) -> None:
    """Each binding may have another value: all that differ are kept."""
    known = notes.get(key, "")
    if value not in known.split(", "):
        notes[key] = f"{known}, {value}" if known else value


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


def _applies(policy: Policy, values: Values) -> bool | Failure | None:
    """Whether all conditions hold under which the policy wants to be asked."""
    for condition in policy.compiled.conditions:
        held = _held(policy, condition, values)
        if held is not True:
            return held
    return True


def _failures(policy: Policy, values: Values) -> Iterator[Failure]:
    told = policy.spec.get("validations") or ()
    for position, expression in enumerate(policy.compiled.validations):
        held = _held(policy, expression, values)
        if isinstance(held, Failure):
            yield held
        elif held is False:
            message = _message(told[position], policy.compiled.messages[position], values)
            yield Failure(message, told[position].get("reason") or "Invalid", position)


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

"""ValidatingAdmissionPolicies, put to a write.

A policy says what must hold, a binding also what happens where it does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from kvestigate import errors
from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.admission.policies import conditions, matching
from kvestigate.cluster.plane.admission.policies.bound import Policy, invocations, policies
from kvestigate.cluster.plane.admission.policies.conditions import Unclear, Values
from kvestigate.cluster.plane.admission.policies.review import Review
from kvestigate.cluster.plane.kinds.policies.compilation import Expression, compile_policy
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.errors import ApiError

_GROUP = "admissionregistration.k8s.io"
POLICIES = (_GROUP, "validatingadmissionpolicies")
BINDINGS = (_GROUP, "validatingadmissionpolicybindings")
_FAILED = "validation.policy.admission.k8s.io/validation_failure"
"""Where the audit log keeps what a policy had against a request."""

_REASONS: dict[str, type[ApiError]] = {
    "Forbidden": errors.Forbidden,
    "Invalid": errors.Invalid,
    "RequestEntityTooLarge": errors.RequestEntityTooLarge,
    "Unauthorized": errors.Unauthorized,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """A validation of a policy that failed for a write."""

    message: str
    reason: str = "Invalid"
    position: int = 0
    """Of the expression among those of its policy."""


def judge(write: Write) -> None:
    """Refuse a write that a policy denies. The message names the first such policy."""
    state = write.scene.state
    if BINDINGS not in state.collections:
        return
    pairs = policies(state.collection(POLICIES), state.collection(BINDINGS), compile_policy)
    if not pairs:
        return
    review = Review(write)
    if matching.exempt(review):
        return
    for refusal in [each for policy in pairs for each in _refusals(policy, review)]:
        raise refusal


def _refusals(policy: Policy, review: Review) -> Iterator[ApiError]:
    for each in invocations(policy, review):
        if each.problem:
            if not policy.lenient:
                yield _refusal(policy, each.binding, review, Failure(each.problem))
            continue
        values = conditions.values(review, each.target, policy.compiled.variables, each.param)
        applies = _applies(policy, values)
        failures = _failures(policy, values) if applies is True else ()
        for failure in (applies,) if isinstance(applies, Failure) else failures:
            yield from _acted_upon(policy, each.binding, review, failure)
        for failure in _annotate(policy, review, values) if applies is True else ():
            yield _refusal(policy, each.binding, review, failure)


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
            annotation = _audited(policy, binding, failure)
            review.write.notes.setdefault(_FAILED, annotation)


def _audited(policy: Policy, binding: Object, failure: Failure) -> str:
    record = {
        "message": failure.message,
        "policy": policy.name,
        "binding": binding["metadata"]["name"],
        "expressionIndex": failure.position,
        "validationActions": binding["spec"]["validationActions"],
    }
    return msgspec.json.encode([record]).decode()


def _annotate(policy: Policy, review: Review, values: Values) -> Iterator[Failure]:
    """Add the policy's audit annotations. Yields a failure for one that has no value."""
    annotations = policy.spec.get("auditAnnotations") or ()
    for each, expression in zip(annotations, policy.compiled.annotations, strict=True):
        try:
            value = conditions.run(expression, values)
        except Unclear as why:
            if not policy.lenient:
                yield Failure(str(why))
            continue
        if isinstance(value, str) and (value := value.strip()):
            _add(review.write.notes, f"{policy.name}/{each['key']}", value)


def _add(notes: dict[str, str], key: str, value: str) -> None:
    """Add a value to an annotation. Different values of several bindings are all kept."""
    known = notes.get(key, "")
    if value not in known.split(", "):
        notes[key] = f"{known}, {value}" if known else value


def _refusal(policy: Policy, binding: Object, review: Review, failure: Failure) -> ApiError:
    message = (
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
        f'{qualified} "{name}" is forbidden: {message}',
        details={**details, "causes": [{"message": message}]},
    )


def _applies(policy: Policy, values: Values) -> bool | Failure:
    """Whether the policy's matchConditions are all true."""
    try:
        return conditions.hold(policy.compiled.conditions, values)
    except Unclear as why:
        return False if policy.lenient else Failure(str(why))


def _failures(policy: Policy, values: Values) -> Iterator[Failure]:
    validations = policy.spec.get("validations") or ()
    for position, expression in enumerate(policy.compiled.validations):
        held = _held(policy, expression, values)
        if isinstance(held, Failure):
            yield held
        elif held is False:
            message = _message(validations[position], policy.compiled.messages[position], values)
            yield Failure(message, validations[position].get("reason") or "Invalid", position)


def _held(policy: Policy, expression: Expression, values: Values) -> bool | Failure | None:
    """The value of a condition; None if it fails and the policy ignores failures."""
    try:
        return bool(conditions.run(expression, values))
    except Unclear as why:
        return None if policy.lenient else Failure(str(why))


def _message(validation: Object, expression: Expression | None, values: Values) -> str:
    if expression is not None:
        try:
            made = str(conditions.run(expression, values)).strip()
        except Unclear:
            made = ""
        if made and "\n" not in made:
            return made
    message = (validation.get("message") or "").strip()
    return message or f"failed expression: {validation['expression'].strip()}"

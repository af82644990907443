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
from kvestigate.kube.cel import EvalError, OutOfBudget, Program
from kvestigate.kube.cel.library import times
from kvestigate.kube.cel.library.authorization import (
    Authorizer,
    Decision,
    Question,
    ResourceCheck,
)
from kvestigate.kube.cel.values import LateFields
from kvestigate.plane import objects
from kvestigate.plane.admission.interface import Write
from kvestigate.plane.admission.namespaces import NAMESPACES
from kvestigate.plane.authn.user import AUTHENTICATED, User
from kvestigate.plane.authz import rbac
from kvestigate.plane.kinds.kind import Object
from kvestigate.plane.policies import matching, parameters
from kvestigate.plane.policies.compilation import Compiled, Expression, compile_policy
from kvestigate.plane.policies.parameters import Misconfigured
from kvestigate.plane.policies.review import Review
from kvestigate.plane.request import Asked
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
            values = _values(policy, review, target, param)
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


# -- expressions -------------------------------------------------------------------------

Values = dict[str, Any]


def _values(policy: Policy, review: Review, target: matching.Target, param: Any) -> Values:
    """What the names in expressions stand for."""
    address, kind = target
    new, old = review.shown(kind)
    values: Values = {
        "object": new,
        "oldObject": old,
        "request": review.request(address, kind),
        "namespaceObject": _namespace(review),
        "params": param,
    }
    values["authorizer"] = authorizer = Authorizer(lambda question: _decide(review, question))
    own = review.address
    values["authorizer.requestResource"] = ResourceCheck(
        authorizer.decide,
        Question(
            group=own.group,
            resource=own.resource,
            subresource=own.subresource,
            namespace=review.namespace,
            name=review.name,
        ),
    )
    values["variables"] = Variables(policy.compiled.variables, values)
    return values


class Variables(LateFields):
    """The variables of a policy, each evaluated once at most."""

    def __init__(self, expressions: dict[str, Expression], values: Values) -> None:
        self._expressions = expressions
        self._values = values
        self._known: dict[str, Any] = {}

    def field(self, key: str) -> Any:
        if key not in self._known:
            program = self._expressions[key].program
            assert program is not None, "policies with mistakes are refused"
            try:
                self._known[key] = _run(program, self._values)
            except EvalError as error:
                told = f'composited variable "{key}" fails to evaluate: {error}'
                raise EvalError(told) from None
        return self._known[key]


def _run(program: Program, values: Values) -> Any:
    return program.run(*[values[name] for name in program.names])


def _namespace(review: Review) -> Object | None:
    if not review.namespace or review.write.kind.key == NAMESPACES:
        return None
    item = review.write.scene.state.get(NAMESPACES, "", review.namespace)
    if item is None:
        return None
    namespace = objects.read(item)
    meta = namespace["metadata"]
    for name in ("creationTimestamp", "deletionTimestamp"):
        if name in meta:
            meta[name] = times.timestamp(meta[name])
    return namespace


def _decide(review: Review, question: Question) -> Decision:
    scene = review.write.scene
    user = scene.user
    if question.account:
        namespace = question.account.split(":")[2]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
        user = User(question.account, groups)
    asked = Asked(
        "GET",
        question.path,
        question.verb,
        question.group,
        "*",
        question.resource,
        question.namespace,
        question.name,
        question.subresource,
    )
    return Decision(rbac.allowed(scene.state, user, asked), rbac.reason(scene.state, user, asked))


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
    if expression.program is None:
        why = expression.problem
    else:
        try:
            return bool(_run(expression.program, values))
        except EvalError as error:
            why = f"expression '{expression.source}' resulted in error: {error}"
        except OutOfBudget:
            why = "validation failed due to running out of cost budget, no further validation rules"
            why += " will be run"
    return None if policy.lenient else Failure(why)


def _message(told: Object, expression: Expression | None, values: Values) -> str:
    if expression is not None and expression.program is not None:
        try:
            made = _run(expression.program, values).strip()
        except (EvalError, OutOfBudget):
            made = ""
        if made and "\n" not in made:
            return str(made)
    message = (told.get("message") or "").strip()
    return message or f"failed expression: {told['expression'].strip()}"

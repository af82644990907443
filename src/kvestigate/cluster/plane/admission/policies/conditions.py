"""What the names in expressions stand for, and running those expressions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kvestigate.cluster.plane.access.authz import rbac
from kvestigate.cluster.plane.admission.policies.matching import Target
from kvestigate.cluster.plane.admission.policies.review import Review
from kvestigate.cluster.plane.admission.rules.namespaces import NAMESPACES
from kvestigate.cluster.plane.kinds.policies.compilation import Expression
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.model.user import AUTHENTICATED, User
from kvestigate.kube.cel import EvalError, OutOfBudget, Program, Purse
from kvestigate.kube.cel.library import times
from kvestigate.kube.cel.library.authorization import (
    Authorizer,
    Decision,
    Question,
    ResourceCheck,
)
from kvestigate.kube.cel.values import LateFields


class Values(dict[str, Any]):
    """The values of the variables, and what all expressions about them may cost together."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.purse = Purse()


class Unclear(Exception):
    """An expression could not be evaluated; the message says why."""


def values(
    review: Review,
    target: Target,
    variables: Mapping[str, Expression] | None = None,
    param: Object | None = None,
) -> Values:
    """The values of the variables that expressions about this write may use."""
    address, kind = target
    new, old = review.shown(kind)
    own = review.address
    about = Question(
        group=own.group,
        resource=own.resource,
        subresource=own.subresource,
        namespace=review.namespace,
        name=review.name,
    )
    authorizer = Authorizer(lambda question: _decide(review, question))
    known = Values(
        {
            "object": new,
            "oldObject": old,
            "request": review.request(address, kind),
            "namespaceObject": _namespace(review),
            "params": param,
            "authorizer": authorizer,
            "authorizer.requestResource": ResourceCheck(authorizer.decide, about),
        }
    )
    known["variables"] = Variables(variables or {}, known)
    return known


class Variables(LateFields):
    """The variables of a policy, each evaluated once at most."""

    def __init__(self, expressions: Mapping[str, Expression], known: Values) -> None:
        self._expressions = expressions
        self._values = known
        self._known: dict[str, Any] = {}

    def field(self, key: str) -> Any:
        if key not in self._known:
            program = self._expressions[key].program
            assert program is not None, "policies with mistakes are refused"
            try:
                self._known[key] = _run(program, self._values)
            except EvalError as error:
                message = f'composited variable "{key}" fails to evaluate: {error}'
                raise EvalError(message) from None
        return self._known[key]


def run(expression: Expression, known: Values) -> Any:
    """The value of an expression, or Unclear."""
    if expression.program is None:
        raise Unclear(expression.problem)
    try:
        return _run(expression.program, known)
    except EvalError as error:
        message = f"expression '{expression.source}' resulted in error: {error}"
        raise Unclear(message) from None
    except OutOfBudget:
        raise Unclear(
            "validation failed due to running out of cost budget, no further validation rules "
            "will be run"
        ) from None


def hold(expressions: Iterable[Expression], known: Values) -> bool:
    """Whether all conditions are true. Raises Unclear only if none is false."""
    troubles = []
    for expression in expressions:
        try:
            if not run(expression, known):
                return False
        except Unclear as why:
            troubles.append(str(why))
    if troubles:
        raise Unclear(troubles[0] if len(troubles) == 1 else f"[{', '.join(troubles)}]")
    return True


def _run(program: Program, known: Values) -> Any:
    return program.run(*[known[name] for name in program.names], purse=known.purse)


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
    info = RequestInfo(
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
    return Decision(rbac.allowed(scene.state, user, info), rbac.reason(scene.state, user, info))

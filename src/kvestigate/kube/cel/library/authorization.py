"""What expressions may ask about permissions: `authorizer.group('apps').resource('deployments')`.

Who decides is given with the value of `authorizer`; nothing here knows any rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from kvestigate.kube.cel.failures import EvalError

_PACKAGE = "kubernetes.authorization"


class Question(msgspec.Struct, frozen=True):
    """May they do this? Either to a path or to a resource."""

    verb: str = ""
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    account: str = ""
    """The service account to ask for, as a user name; empty for the one who makes the request."""


class Decision(msgspec.Struct, frozen=True):
    TYPE: ClassVar[str] = f"{_PACKAGE}.Decision"
    allowed: bool
    reason: str = ""


class Authorizer(msgspec.Struct, frozen=True):
    TYPE: ClassVar[str] = f"{_PACKAGE}.Authorizer"
    decide: Callable[[Question], Decision]
    question: Question = Question()


class PathCheck(Authorizer, frozen=True):
    TYPE: ClassVar[str] = f"{_PACKAGE}.PathCheck"


class GroupCheck(Authorizer, frozen=True):
    TYPE: ClassVar[str] = f"{_PACKAGE}.GroupCheck"


class ResourceCheck(Authorizer, frozen=True):
    TYPE: ClassVar[str] = f"{_PACKAGE}.ResourceCheck"


def _path(authorizer: Authorizer, path: str) -> PathCheck:
    if not path:
        raise EvalError("path must not be empty")
    return PathCheck(authorizer.decide, replace(authorizer.question, path=path))


def _group(authorizer: Authorizer, group: str) -> GroupCheck:
    return GroupCheck(authorizer.decide, replace(authorizer.question, group=group))


def _account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    account = f"system:serviceaccount:{namespace}:{name}"
    return replace(authorizer, question=replace(authorizer.question, account=account))


def _resource(check: GroupCheck, resource: str) -> ResourceCheck:
    return ResourceCheck(check.decide, replace(check.question, resource=resource))


def _narrowed(field: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    return lambda check, value: replace(check, question=replace(check.question, **{field: value}))


def _check(check: Authorizer, verb: str) -> Decision:
    return check.decide(replace(check.question, verb=verb))


FUNCTIONS = {
    f"{Authorizer.TYPE}::path(string) -> {PathCheck.TYPE}": _path,
    f"{Authorizer.TYPE}::group(string) -> {GroupCheck.TYPE}": _group,
    f"{Authorizer.TYPE}::serviceAccount(string, string) -> {Authorizer.TYPE}": _account,
    f"{GroupCheck.TYPE}::resource(string) -> {ResourceCheck.TYPE}": _resource,
    **{
        f"{ResourceCheck.TYPE}::{field}(string) -> {ResourceCheck.TYPE}": _narrowed(field)
        for field in ("subresource", "namespace", "name")
    },
    f"{PathCheck.TYPE}::check(string) -> {Decision.TYPE}": _check,
    f"{ResourceCheck.TYPE}::check(string) -> {Decision.TYPE}": _check,
    f"{Decision.TYPE}::allowed() -> bool": lambda decision: decision.allowed,
    f"{Decision.TYPE}::reason() -> string": lambda decision: decision.reason,
    f"{Decision.TYPE}::errored() -> bool": lambda decision: False,
    f"{Decision.TYPE}::error() -> string": lambda decision: "",
}

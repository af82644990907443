"""SubjectAccessReview, TokenReview and the other reviews: answered, never stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from kvestigate.cluster.plane.access.authz import nodes, rbac
from kvestigate.cluster.plane.access.interface import Authenticated
from kvestigate.cluster.plane.admission.policies.review import user_info
from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.model import metadata
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.model.user import User
from kvestigate.cluster.plane.request import body
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.verbs import writing
from kvestigate.errors import BadRequest, Unauthorized
from kvestigate.http.message import Headers, Request, Response
from kvestigate.kube import causes
from kvestigate.kube.field_selectors import FieldTerm

Spec = dict[str, Any]


async def self_subject_review(call: Call) -> Response:
    """The user that the request is made as (`kubectl auth whoami`)."""
    await body.decode(call)
    review = _review(call, {})
    review["metadata"]["creationTimestamp"] = metadata.timestamp(call.clock.now())
    del review["spec"]
    review["status"] = {"userInfo": user_info(call.user)}
    return answer.made(call, review)


async def self_subject_access_review(call: Call) -> Response:
    """Whether the user may make a request (`kubectl auth can-i`)."""
    spec, metadata_problems = await _access_review(call)
    _reject_if_any(call, [*_target_problems(spec), *metadata_problems])
    return _verdict(call, spec, call.user)


async def subject_access_review(call: Call) -> Response:
    """Whether the given user or groups may make a request."""
    spec, metadata_problems = await _access_review(call)
    _reject_if_any(call, [*_target_problems(spec), *_subject_problems(spec), *metadata_problems])
    return _verdict(call, spec, _subject(spec))


async def local_subject_access_review(call: Call) -> Response:
    """Whether the given user or groups may make a request in this namespace."""
    spec, metadata_problems = await _access_review(call)
    problems = [*_target_problems(spec), *_subject_problems(spec), *metadata_problems]
    _reject_if_any(call, [*problems, *_namespace_problems(spec, call.info.namespace)])
    return _verdict(call, spec, _subject(spec))


async def self_subject_rules_review(call: Call) -> Response:
    """The user's rules in a namespace (`kubectl auth can-i --list`)."""
    spec = _spec(await body.decode(call))
    namespace = spec.get("namespace", "")
    if not namespace:
        raise BadRequest("no namespace on request")
    rules = list(rbac.index(call.plane.state).rules(call.user, namespace))
    kubelet = nodes.node_of(call.user) is not None
    status = {
        "resourceRules": [
            msgspec.to_builtins(rule) for rule in rules if not rule.non_resource_urls
        ],
        "nonResourceRules": [msgspec.to_builtins(rule) for rule in rules if rule.non_resource_urls],
        "incomplete": kubelet,
    }
    if kubelet:
        status["evaluationError"] = "node authorizer does not support user rule resolution"
    return answer.made(call, {**_review(call, {}), "status": status})


async def token_review(call: Call) -> Response:
    """The user of a bearer token."""
    review = await body.decode(call)
    spec = _spec(review)
    token = spec.get("token", "")
    if not token:
        raise BadRequest("token is required for TokenReview in authentication")
    user: User | None = None
    audiences: list[str] = []
    for audience in spec.get("audiences") or [call.issuer.issuer(call.plane.name)]:
        try:
            user = _user_of(call, token, audience)
        except Unauthorized:
            continue
        audiences.append(audience)
    status: dict[str, Any] = {"user": {}, "error": "invalid bearer token"}
    if user is not None:
        status = {"authenticated": True, "user": user_info(user), "audiences": audiences}
    review = {**_review(call, spec), "metadata": review["metadata"], "status": status}
    return answer.made(call, review)


def _user_of(call: Call, token: str, audience: str) -> User:
    """The user of a token for an audience; Unauthorized if it is invalid or for another one."""
    name, clock = call.plane.name, call.clock
    credential: Authenticated
    if call.issuer.mine(token):
        credential = call.issuer.recognise(token, name, clock.now(), audience)
    elif audience == call.issuer.issuer(name):  # static tokens are for this server only
        headers = Headers([("authorization", f"Bearer {token}")])
        credential = call.services.authenticator.authenticate(
            Request("GET", "/", headers=headers), name, clock.now
        )
    else:
        raise Unauthorized("Unauthorized")
    return credential if isinstance(credential, User) else credential.redeem(call.plane.state)


def _spec(review: dict[str, Any]) -> Spec:
    spec = review.get("spec")
    return spec if isinstance(spec, dict) else {}


async def _access_review(call: Call) -> tuple[Spec, list[causes.Cause]]:
    """The spec of an access review, and the problem if it has metadata, which must be empty."""
    review = await body.decode(call)
    writing.check_namespace(call, review)
    meta = {name: value for name, value in review["metadata"].items() if value}
    meta.pop("namespace", None)
    if not meta:
        return _spec(review), []
    but = " except for namespace" if call.kind.resource.namespaced else ""
    return _spec(review), [causes.invalid("metadata", meta, f"must be empty{but}")]


def _review(call: Call, spec: Spec) -> dict[str, Any]:
    resource = call.kind.resource
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {},
        "spec": spec,
    }


def _verdict(call: Call, spec: Spec, user: User) -> Response:
    state, info = call.plane.state, _request_info(spec)
    status: dict[str, Any] = {"allowed": rbac.allowed(state, user, info)}
    if reason := rbac.reason(state, user, info):
        status["reason"] = reason
    review = _review(call, spec)
    if call.info.namespace:
        review["metadata"]["namespace"] = call.info.namespace
    return answer.made(call, {**review, "status": status})


def _subject(spec: Spec) -> User:
    groups = tuple(spec.get("groups") or ())
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user", ""), groups, spec.get("uid", ""), extra)


def _request_info(spec: Spec) -> RequestInfo:
    """The request that an access review is about."""
    if path := spec.get("nonResourceAttributes"):
        return RequestInfo("GET", path.get("path", ""), path.get("verb", ""))
    attributes: Spec = spec.get("resourceAttributes") or {}
    return RequestInfo(
        "GET",
        "",
        attributes.get("verb", ""),
        attributes.get("group", ""),
        attributes.get("version", ""),
        attributes.get("resource", ""),
        attributes.get("namespace", ""),
        attributes.get("name", ""),
        attributes.get("subresource", ""),
        params={"fieldSelector": _field_selector(attributes.get("fieldSelector") or {})},
    )


def _field_selector(selector: Spec) -> str:
    """The field selector of the reviewed request; requirements with several values are ignored."""
    terms = [
        FieldTerm(requirement["key"], requirement["values"][0], requirement["operator"] == "NotIn")
        for requirement in selector.get("requirements") or ()
        if requirement.get("operator") in checks.SETS and len(requirement.get("values") or ()) == 1
    ]
    return selector.get("rawSelector") or ",".join(map(str, terms))


def _target_problems(spec: Spec) -> Iterator[causes.Cause]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield causes.invalid("spec.resourceAttributes", None, why)
    elif resource is not None and path is not None:
        yield _path_problem(path, "cannot be specified in combination with resourceAttributes")


def _namespace_problems(spec: Spec, namespace: str) -> Iterator[causes.Cause]:
    named = (spec.get("resourceAttributes") or {"namespace": namespace}).get("namespace", "")
    if named != namespace:
        field = "spec.resourceAttributes.namespace"
        yield causes.invalid(field, named, "must match metadata.namespace")
    if (path := spec.get("nonResourceAttributes")) is not None:
        yield _path_problem(path, "disallowed on this kind of request")


def _path_problem(path: Spec, why: str) -> causes.Cause:
    value = {"Path": path.get("path", ""), "Verb": path.get("verb", "")}
    return causes.invalid("spec.nonResourceAttributes", value, why)


def _subject_problems(spec: Spec) -> Iterator[causes.Cause]:
    if not spec.get("user") and not spec.get("groups"):
        why = "at least one of user or group must be specified"
        yield causes.invalid("spec.user", spec.get("user", ""), why)


def _reject_if_any(call: Call, problems: list[causes.Cause]) -> None:
    if problems:
        # Without the kind, as kube-apiserver does.
        raise causes.reject("", call.kind.resource.group, "", problems)

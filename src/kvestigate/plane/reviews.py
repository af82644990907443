"""Reviews: questions about users and permissions, answered and never stored."""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate.errors import BadRequest, Unauthorized
from kvestigate.kube import causes
from kvestigate.plane import answer, body, metadata
from kvestigate.plane.authn.user import MASTERS, User
from kvestigate.plane.authz import rbac
from kvestigate.plane.authz.rules import ALL, Rule
from kvestigate.plane.call import Call
from kvestigate.plane.request import Asked
from kvestigate.wire.message import Response

Spec = dict[str, Any]


async def self_subject_review(call: Call) -> Response:
    """Who am I?"""
    body.decode(call)
    review = _review(call, {})
    review["metadata"]["creationTimestamp"] = metadata.timestamp(call.clock.now())
    del review["spec"]
    review["status"] = {"userInfo": _user_info(call.user)}
    return answer.json_value(review, 201)


async def self_subject_access_review(call: Call) -> Response:
    """May I?"""
    spec = _spec(call)
    return _verdict(call, spec, call.user)


async def subject_access_review(call: Call) -> Response:
    """May they?"""
    spec = _spec(call)
    if not spec.get("user") and not spec.get("groups"):
        cause = causes.invalid("spec.user", "", "at least one of user or group must be specified")
        resource = call.kind.resource
        raise causes.reject(resource.kind, resource.group, "", [cause])
    groups = tuple(spec.get("groups") or ())
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return _verdict(call, spec, User(spec.get("user", ""), groups, spec.get("uid", ""), extra))


async def local_subject_access_review(call: Call) -> Response:
    """May they, here?"""
    attributes = _spec(call).get("resourceAttributes") or {}
    if attributes.get("namespace", "") != call.asked.namespace:
        raise BadRequest(
            f"spec.resourceAttributes.namespace must match namespace: {call.asked.namespace}"
        )
    return await subject_access_review(call)


async def self_subject_rules_review(call: Call) -> Response:
    """What may I do in a namespace?"""
    spec = _spec(call)
    namespace = spec.get("namespace", "")
    if not namespace:
        raise BadRequest("no namespace on request")
    if MASTERS in call.user.groups:
        everything = Rule((ALL,), (ALL,), (ALL,))
        rules = [everything, Rule((ALL,), non_resource_urls=(ALL,))]
    else:
        rules = list(rbac.index(call.plane.state).rules(call.user, namespace))
    status = {
        "resourceRules": [_shown(rule) for rule in rules if not rule.non_resource_urls],
        "nonResourceRules": [_shown(rule) for rule in rules if rule.non_resource_urls],
        "incomplete": False,
    }
    return answer.json_value({**_review(call, {}), "status": status}, 201)


async def token_review(call: Call) -> Response:
    """Whose token is this?"""
    spec = _spec(call)
    audiences = spec.get("audiences") or [call.issuer.issuer(call.plane.name)]
    try:
        user = call.issuer.authenticate(
            spec.get("token", ""), call.plane.name, call.plane.state, call.clock.now()
        )
    except Unauthorized:
        status: dict[str, Any] = {"user": {}, "error": "invalid bearer token"}
    else:
        status = {"authenticated": True, "user": _user_info(user), "audiences": audiences}
    return answer.json_value({**_review(call, spec), "status": status}, 201)


def _spec(call: Call) -> Spec:
    spec = body.decode(call).get("spec")
    return spec if isinstance(spec, dict) else {}


def _review(call: Call, spec: Spec) -> dict[str, Any]:
    resource = call.kind.resource
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {},
        "spec": spec,
    }


def _verdict(call: Call, spec: Spec, user: User) -> Response:
    asked = _question(call, spec)
    permitted = rbac.allowed(call.plane.state, user, asked)
    status: dict[str, Any] = {"allowed": permitted}
    return answer.json_value({**_review(call, spec), "status": status}, 201)


def _question(call: Call, spec: Spec) -> Asked:
    """The request whose fate is asked for."""
    attributes: Spec = spec.get("resourceAttributes") or {}
    path: Spec = spec.get("nonResourceAttributes") or {}
    if bool(attributes) == bool(path):
        resource = call.kind.resource
        cause = causes.invalid(
            "spec.resourceAttributes" if attributes else "spec",
            attributes or spec,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )
        raise causes.reject(resource.kind, resource.group, "", [cause])
    if path:
        return Asked("GET", path.get("path", ""), path.get("verb", ""))
    return Asked(
        "GET",
        "",
        attributes.get("verb", ""),
        attributes.get("group", ""),
        attributes.get("version", ""),
        attributes.get("resource", ""),
        attributes.get("namespace", ""),
        attributes.get("name", ""),
        attributes.get("subresource", ""),
    )


def _user_info(user: User) -> dict[str, Any]:
    info: dict[str, Any] = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info


def _shown(rule: Rule) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(rule)
    return shown

"""Admission webhooks: which of them a write concerns, and what their answers mean. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec

from kvestigate.cluster.plane.admission.policies import conditions, matching
from kvestigate.cluster.plane.admission.policies.review import Review
from kvestigate.cluster.plane.egress.webhooks import CallFailed, CallRefused
from kvestigate.cluster.plane.kinds.policies.compilation import BOOL, Compiler, Expression
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.store.state import Collection, PlaneState
from kvestigate.errors import (
    API_ERRORS,
    ApiError,
    BadRequest,
    Forbidden,
    InternalError,
    from_status,
)

_GROUP = "admissionregistration.k8s.io"
MUTATING = (_GROUP, "mutatingwebhookconfigurations")
VALIDATING = (_GROUP, "validatingwebhookconfigurations")
_VERSIONS = ("v1", "v1beta1")
_SETS = 64
_FAILURE = 400
_REASONS = frozenset(error.reason for error in API_ERRORS)


@dataclass(frozen=True, slots=True)
class Hook:
    name: str
    spec: Object
    """The webhook in its configuration."""
    conditions: tuple[Expression, ...]

    @property
    def lenient(self) -> bool:
        """Whether the write goes on if the webhook cannot be called (`failurePolicy: Ignore`)."""
        return bool(self.spec["failurePolicy"] == "Ignore")

    @property
    def version(self) -> str:
        """The first AdmissionReview version that the webhook accepts and this server supports."""
        accepted: list[str] = self.spec["admissionReviewVersions"]
        return next(version for version in accepted if version in _VERSIONS)


@dataclass(frozen=True, slots=True)
class Answer:
    allowed: bool
    status: Object
    warnings: tuple[str, ...] = ()
    patch: Any = None
    notes: Mapping[str, str] = field(default_factory=dict)
    """For the audit log."""


def hooks(state: PlaneState, resource: tuple[str, str]) -> tuple[Hook, ...]:
    """The webhooks of a plane, by the names of their configurations."""
    configurations = state.collections.get(resource)
    return () if configurations is None else _hooks(configurations)


@lru_cache(maxsize=_SETS)
def _hooks(configurations: Collection) -> tuple[Hook, ...]:
    return tuple(
        Hook(spec["name"], spec, tuple(_conditions(spec)))
        for item in configurations.items()
        for spec in objects.read(item).get("webhooks") or ()
    )


def _conditions(spec: Object) -> Iterator[Expression]:
    compiler = Compiler({})
    for each in spec.get("matchConditions") or ():
        yield compiler.expression(each["expression"], BOOL)


def concern(hook: Hook, review: Review) -> matching.Target | None:
    """The resource and version at which the webhook is called; None if it does not match.

    Raises a refusal if matching itself fails.
    """
    if not hook.spec.get("rules"):
        return None
    target = matching.find(hook.spec, "rules", review)
    if target is None or not hook.conditions:
        return target
    try:
        held = conditions.hold(hook.conditions, conditions.values(review, target))
    except conditions.Unclear as why:
        if not hook.lenient:
            raise _forbidden(review, str(why)) from None
        held = False
    return target if held else None


def _forbidden(review: Review, why: str) -> Forbidden:
    address, name = review.address, review.shown_name
    qualified = f"{address.resource}.{address.group}" if address.group else address.resource
    details = {"name": name, "group": address.group, "kind": address.resource}
    return Forbidden(
        f'{qualified} "{name}" is forbidden: {why}',
        details={key: value for key, value in details.items() if value},
    )


def question(hook: Hook, review: Review, target: matching.Target, uid: str) -> bytes:
    """The AdmissionReview to send."""
    address, kind = target
    new, old = review.shown(kind)
    request = {"uid": uid, **review.request(address, kind), "object": new, "oldObject": old}
    version = f"admission.k8s.io/{hook.version}"
    return msgspec.json.encode(
        {"kind": "AdmissionReview", "apiVersion": version, "request": request}
    )


def understood(hook: Hook, uid: str, data: bytes, *, mutates: bool) -> Answer:
    """The decoded answer of a webhook. Raises CallFailed."""
    try:
        review = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = f"couldn't get version/kind; json parse error: {error}"
        raise CallFailed(f"failed to call webhook: {why}") from None
    version = review.get("apiVersion", "") if isinstance(review, dict) else ""
    if version != f"admission.k8s.io/{hook.version}":
        kind = review.get("kind", "") if isinstance(review, dict) else ""
        why = f'no kind "{kind}" is registered for version "{version}"'
        raise CallFailed(f"failed to call webhook: {why}")
    response = review.get("response")
    if not isinstance(response, dict):
        raise CallFailed("received invalid webhook response: webhook response was absent")
    if response.get("uid") != uid and hook.version == "v1":
        mismatch = f'expected response.uid="{uid}", got "{response.get("uid", "")}"'
        raise CallFailed(f"received invalid webhook response: {mismatch}")
    return Answer(
        bool(response.get("allowed")),
        response.get("status") or {},
        tuple(map(str, response.get("warnings") or ())),
        _patch(response, mutates=mutates),
        response.get("auditAnnotations") or {},
    )


def _patch(response: Object, *, mutates: bool) -> Any:
    patch, kind = response.get("patch"), response.get("patchType")
    if not patch:
        return None
    invalid = "received invalid webhook response: "
    if not mutates:
        raise CallFailed(f"{invalid}validating webhook may not return response.patch")
    if not kind:
        raise CallFailed(f"{invalid}webhook returned response.patch but not response.patchType")
    try:
        decoded = msgspec.json.decode(base64.b64decode(patch, validate=True))
    except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CallFailed(f"received undecodable patch in webhook response: {error}") from None
    if decoded and kind != "JSONPatch":
        raise CallFailed(f'unsupported patch type "{kind}"')
    return decoded


def denial(hook: Hook, status: Object) -> ApiError:
    """The error with which a webhook refuses a write."""
    text = f'admission webhook "{hook.name}" denied the request'
    why = status.get("message") or status.get("reason")
    text = f"{text}: {why}" if why else f"{text} without explanation"
    code = status.get("code") or 0
    code = code if code >= _FAILURE else _FAILURE
    if status.get("reason") not in _REASONS:
        return ApiError(text, details=status.get("details"), code=code)
    return from_status({**status, "message": text}, code=code)


def internal(why: str) -> InternalError:
    return InternalError(f"Internal error occurred: {why}", details={"causes": [{"message": why}]})


def failed(hook: Hook, why: CallFailed) -> ApiError:
    text = f'failed calling webhook "{hook.name}": {why}'
    return BadRequest(text) if isinstance(why, CallRefused) else internal(text)

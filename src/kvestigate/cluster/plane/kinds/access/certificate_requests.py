"""CertificateSigningRequests: who asks is on record, and only approvers approve. Pure."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.cluster.plane.model.metadata import timestamp
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Cause, Causes
from kvestigate.kube.fieldpaths import Path

USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
DECISIONS = ("Approved", "Denied")

_LIFETIME_MIN = 600
_CONDITIONS = Path("status").child("conditions")


class CertificateSigningRequestKind(Kind):
    status_subresources = ("status", "approval")
    selectable = (("spec.signerName", lambda obj: (obj.get("spec") or {}).get("signerName", "")),)

    def name_problems(self, name: str) -> list[str]:
        return names.path_segment_problems(name)

    def on_create(self, obj: Object, scene: Scene) -> None:
        spec, user = obj.setdefault("spec", {}), scene.user
        for field in ("username", "uid", "groups", "extra"):
            spec.pop(field, None)
        spec["username"] = user.name
        if user.uid:
            spec["uid"] = user.uid
        if user.groups:
            spec["groups"] = list(user.groups)
        if user.extra:
            spec["extra"] = {name: list(values) for name, values in user.extra.items()}

    def on_update(self, new: Object, old: Object, scene: Scene) -> None:
        new["spec"] = old.get("spec", {})
        if scene.subresource not in self.status_subresources:
            return
        status = new.setdefault("status", {})
        before = old.get("status") or {}
        approving = scene.subresource == "approval"
        if approving:
            _keep(status, before, "certificate")
        status["conditions"] = [
            *_dated(status.get("conditions") or [], before.get("conditions") or [], scene.now)
        ]
        if not approving:
            _keep_decisions(status, before)
        if not status["conditions"]:
            del status["conditions"]

    def validate(self, obj: Object, scene: Scene) -> Causes:
        spec = obj.get("spec") or {}
        return [
            *_request(spec.get("request")),
            *_usages(spec),
            *_signer(spec),
            *_lifetime(spec.get("expirationSeconds")),
        ]

    def validate_status(self, new: Object, old: Object, scene: Scene) -> Causes:
        conditions = (new.get("status") or {}).get("conditions") or []
        types = [each["type"] for each in conditions]
        before = [each["type"] for each in (old.get("status") or {}).get("conditions") or ()]
        problems = [
            causes.forbidden(_CONDITIONS, f'updates may not remove a condition of type "{each}"')
            for each in dict.fromkeys(before)
            if each not in types
        ]
        for index, each in enumerate(conditions):
            if each["type"] in (*DECISIONS, "Failed") and each.get("status") != "True":
                path = _CONDITIONS.index(index).child("status")
                problems.append(causes.unsupported(path, each.get("status"), ["True"]))
        if set(DECISIONS) <= set(types):
            later = max(DECISIONS, key=types.index)
            why = "Approved and Denied conditions are mutually exclusive"
            problems.append(causes.invalid(_CONDITIONS, later, why))
        return problems + _certificate((new.get("status") or {}).get("certificate"))


def _keep(status: Object, before: Object, field: str) -> None:
    if field in before:
        status[field] = before[field]
    else:
        status.pop(field, None)


def _keep_decisions(status: Object, before: Object) -> None:
    """Keep approvals and denials, which a write to the status may not change."""
    decided = [each for each in before.get("conditions") or () if each["type"] in DECISIONS]
    others = [each for each in status["conditions"] if each["type"] not in DECISIONS]
    status["conditions"] = [*decided, *others]


def _dated(conditions: list[Object], before: list[Object], now: float) -> list[Object]:
    """The conditions, with missing times filled in."""
    known = {each["type"]: each for each in before}
    dated = []
    for each in conditions:
        was = known.get(each["type"])
        same = was is not None and was.get("status") == each.get("status")
        moved = was.get("lastTransitionTime") if same and was else timestamp(now)
        updated = was.get("lastUpdateTime") if same and was else timestamp(now)
        dated.append(
            {
                **each,
                "lastUpdateTime": each.get("lastUpdateTime") or updated,
                "lastTransitionTime": each.get("lastTransitionTime") or moved,
            }
        )
    return dated


def _request(value: Any) -> list[Cause]:
    if _pem_type(value) == "CERTIFICATE REQUEST":
        return []
    why = "PEM block type must be CERTIFICATE REQUEST"
    return [causes.invalid("spec.request", value or None, why)]


def _certificate(value: Any) -> list[Cause]:
    if not value:
        return []
    why = "must contain at least one CERTIFICATE PEM block"
    if _pem_type(value) == "CERTIFICATE":
        if _readable(base64.b64decode(value)):
            return []
        why = "x509: malformed certificate"
    return [causes.invalid("status.certificate", "<certificate data>", why)]


def _readable(pem: bytes) -> bool:
    from cryptography.x509 import load_pem_x509_certificates

    try:
        return bool(load_pem_x509_certificates(pem))
    except ValueError:
        return False


def _pem_type(value: Any) -> str:
    """The type of the first PEM block in base64-encoded data; empty if there is none."""
    try:
        text = base64.b64decode(value or "", validate=True).decode("ascii", "replace")
    except (binascii.Error, TypeError):
        return ""
    head, begin, rest = text.partition("-----BEGIN ")
    return rest.partition("-----")[0] if begin and not head.strip() else ""


def _usages(spec: Object) -> list[Cause]:
    usages = spec.get("usages") or []
    if not usages:
        return [causes.required("spec.usages")]
    path = Path("spec").child("usages")
    unknown = [
        causes.unsupported(path.index(index), usage, USAGES)
        for index, usage in enumerate(usages)
        if usage not in USAGES
    ]
    repeated = [
        causes.duplicate(path.index(index), usage)
        for index, usage in enumerate(usages)
        if usage in usages[:index]
    ]
    return unknown + repeated


def _lifetime(seconds: int | None) -> list[Cause]:
    if seconds is None or seconds >= _LIFETIME_MIN:
        return []
    why = f"may not specify a duration less than {_LIFETIME_MIN} seconds (10 minutes)"
    return [causes.invalid("spec.expirationSeconds", seconds, why)]


def _signer(spec: Object) -> list[Cause]:
    name = spec.get("signerName") or ""
    if not name:
        return [causes.required("spec.signerName")]
    domain, slash, path = name.partition("/")
    if not slash or not path or "/" in path or "." not in domain:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [causes.invalid("spec.signerName", name, why)]
    return [
        causes.invalid("spec.signerName", name, problem)
        for problem in (*names.subdomain_problems(domain), *names.subdomain_problems(path))
    ]

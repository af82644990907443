"""What a certificate is asked for, and whether a signer issues it. Pure.

The refusals are kube-controller-manager's, word for word.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from kvestigate.cluster.controllers.objects import SigningRequest, SigningRequestSpec

if TYPE_CHECKING:
    from cryptography import x509

CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING = "kubernetes.io/kubelet-serving"
LEGACY = "kubernetes.io/legacy-unknown"
SIGNERS = (CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY)

_DAY = timedelta(days=1)
_YEAR = timedelta(days=365)
_SHORTEST = timedelta(minutes=10)
_SHORT = timedelta(hours=8)
_BACKDATE = timedelta(minutes=5)

_USAGES = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
_PURPOSES = {
    "any": "2.5.29.37.0",
    "server auth": "1.3.6.1.5.5.7.3.1",
    "client auth": "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3",
    "email protection": "1.3.6.1.5.5.7.3.4",
    "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5",
    "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
    "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8",
    "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
    "netscape sgc": "2.16.840.1.113730.4.1",
}
_FOR_CLIENTS = ("digital signature", "key encipherment", "client auth")
_FOR_SERVERS = ("digital signature", "key encipherment", "server auth")


@dataclass(frozen=True, slots=True)
class Subject:
    """The parts of a PKCS#10 request that signers judge."""

    common_name: str
    organizations: tuple[str, ...]
    alternatives: Collection[str] = ()
    """The kinds of the alternative names: DNS, Email, IP, URI."""


def parsed(spec: SigningRequestSpec) -> x509.CertificateSigningRequest | None:
    """The PKCS#10 request; None if it cannot be read or was not signed with its own key."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.x509 import load_pem_x509_csr

    try:
        request = load_pem_x509_csr(b64decode(spec.request))
        return request if request.is_signature_valid else None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None


def subject_of(request: x509.CertificateSigningRequest) -> Subject:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    kinds: dict[type[x509.GeneralName], str] = {
        x509.DNSName: "DNS",
        x509.RFC822Name: "Email",
        x509.IPAddress: "IP",
        x509.UniformResourceIdentifier: "URI",
    }
    names = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    organizations = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return Subject(
        str(names[-1].value) if names else "",
        tuple(str(each.value) for each in organizations),
        {kinds.get(type(name), "") for name in _alternatives(request) or ()},
    )


def _alternatives(request: x509.CertificateSigningRequest) -> x509.SubjectAlternativeName | None:
    from cryptography import x509

    try:
        return request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return None


def problem(signer: str, subject: Subject, usages: Collection[str]) -> str:
    """Why a signer does not issue such a certificate; empty if it does."""
    if signer == CLIENT:
        return _client_problem(usages)
    if signer == KUBELET_CLIENT:
        return _kubelet_client_problem(subject, usages)
    if signer == KUBELET_SERVING:
        return _kubelet_serving_problem(subject, usages)
    return ""


def _client_problem(usages: Collection[str]) -> str:
    for usage in usages:
        if usage not in _FOR_CLIENTS:
            return f"invalid usage for client certificate: {usage}"
    if "client auth" not in usages:
        return "missing required usage for client certificate: client auth"
    return ""


def _kubelet_client_problem(subject: Subject, usages: Collection[str]) -> str:
    if subject.organizations != ("system:nodes",):
        return "subject organization is not system:nodes"
    for kind in ("DNS", "Email", "IP", "URI"):
        if kind in subject.alternatives:
            return f"{kind} subjectAltNames are not allowed"
    if not subject.common_name.startswith("system:node:"):
        return "subject common name does not begin with system:node:"
    return _usage_problem(usages, _FOR_CLIENTS)


def _kubelet_serving_problem(subject: Subject, usages: Collection[str]) -> str:
    if subject.organizations != ("system:nodes",):
        return "subject organization is not system:nodes"
    if not {"DNS", "IP"}.intersection(subject.alternatives):
        return "DNS or IP subjectAltName is required"
    for kind in ("Email", "URI"):
        if kind in subject.alternatives:
            return f"{kind} subjectAltNames are not allowed"
    if found := _usage_problem(usages, _FOR_SERVERS):
        return found
    if not subject.common_name.startswith("system:node:"):
        return "subject common name does not begin with system:node:"
    return ""


def _usage_problem(usages: Collection[str], required: tuple[str, str, str]) -> str:
    """Keys that are not RSA cannot encipher, so that usage may be missing."""
    signature, _, purpose = required
    if set(usages) in (set(required), {signature, purpose}):
        return ""
    return f"usages did not match [{' '.join(sorted(required))}]"


def validity(
    seconds: int | None, now: datetime, authority_expires: datetime
) -> tuple[datetime, datetime]:
    """From when to when a certificate is valid: a year, or less if that was asked for."""
    lifetime = _YEAR if seconds is None else timedelta(seconds=seconds)
    lifetime = max(_SHORTEST, min(_YEAR, lifetime))
    end = now + lifetime - (timedelta() if lifetime < _SHORT else _BACKDATE)
    return now - _BACKDATE, min(end, authority_expires)


def extensions(
    request: x509.CertificateSigningRequest, usages: Collection[str]
) -> list[tuple[x509.ExtensionType, bool]]:
    """(extension, whether it is critical): the usages, and the request's alternative names."""
    from cryptography import x509

    flags = {_USAGES[usage] for usage in usages if usage in _USAGES}
    found: list[tuple[x509.ExtensionType, bool]] = []
    if flags:
        every = {flag: flag in flags for flag in _USAGES.values()}
        agrees = every["key_agreement"]  # else it cannot be said for what
        every["encipher_only"] &= agrees
        every["decipher_only"] &= agrees
        found.append((x509.KeyUsage(**every), True))
    purposes = dict.fromkeys(_PURPOSES[usage] for usage in usages if usage in _PURPOSES)
    if purposes:
        oids = [x509.ObjectIdentifier(purpose) for purpose in purposes]
        found.append((x509.ExtendedKeyUsage(oids), False))
    if (names := _alternatives(request)) is not None:
        found.append((names, False))
    return found


def keeps_until(request: SigningRequest) -> datetime | None:
    """When a request is removed: an hour after it was decided and done, a day after it was not."""
    status = request.status
    hour, moments = _DAY / 24, []
    if not status.conditions and request.metadata.creation_timestamp is not None:
        moments.append(request.metadata.creation_timestamp + _DAY)
    for condition in status.conditions:
        if condition.last_update_time is None:
            continue
        if condition.type in ("Denied", "Failed"):
            moments.append(condition.last_update_time + hour)
        elif condition.type == "Approved":
            moments.append(condition.last_update_time + (hour if status.certificate else _DAY))
    return min(moments, default=None)

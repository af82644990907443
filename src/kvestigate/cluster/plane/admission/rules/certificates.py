"""Who may approve and sign certificates, and what nobody can ask for."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING

from kvestigate.cluster.plane.access.authz import rbac
from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.model.user import MASTERS

if TYPE_CHECKING:
    from cryptography.x509 import ObjectIdentifier

_CLIENTS = "kubernetes.io/kube-apiserver-client"


def guard_signer(write: Write) -> None:
    """Approving and signing take a permission for the signer, besides that for the request."""
    if write.operation != "UPDATE" or write.old is None:
        return
    if write.info.subresource == "approval":
        verb = "approve"
    elif write.info.subresource == "status" and _certificate(write.new) != _certificate(write.old):
        verb = "sign"
    else:
        return
    # The stored one: what the writer says of the signer does not count.
    signer = write.old["spec"]["signerName"]
    everything = f"{signer.partition('/')[0]}/*"
    if not any(_may(write, verb, name) for name in (signer, everything)):
        raise write.forbidden(f'user not permitted to {verb} requests with signerName "{signer}"')


def forbid_masters(write: Write) -> None:
    """A certificate cannot be taken back, so none is made for the group that may do anything."""
    spec = write.new["spec"]
    if not write.creates or spec.get("signerName") != _CLIENTS:
        return
    if MASTERS in _organizations(spec["request"]):
        raise write.forbidden(f"use of {_CLIENTS} signer with {MASTERS} group is not allowed")


def _certificate(obj: dict[str, dict[str, str]]) -> str | None:
    return (obj.get("status") or {}).get("certificate")


def _may(write: Write, verb: str, signer: str) -> bool:
    info = RequestInfo("POST", "", verb, "certificates.k8s.io", "v1", "signers", "", signer)
    return rbac.allowed(write.scene.state, write.scene.user, info)


def common_name(request: str) -> str:
    """Whom a request wants a certificate for; empty if it cannot be read."""
    from cryptography.x509.oid import NameOID

    names = [str(name) for name in _subject(request, NameOID.COMMON_NAME)]
    return names[-1] if names else ""


def _organizations(request: str) -> list[str | bytes]:
    from cryptography.x509.oid import NameOID

    return _subject(request, NameOID.ORGANIZATION_NAME)


def _subject(request: str, attribute: ObjectIdentifier) -> list[str | bytes]:
    from cryptography.x509 import load_pem_x509_csr

    try:
        subject = load_pem_x509_csr(b64decode(request)).subject
    except ValueError:
        return []  # what cannot be read cannot be signed either
    return [each.value for each in subject.get_attributes_for_oid(attribute)]

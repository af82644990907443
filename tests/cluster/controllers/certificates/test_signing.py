"""CertificateSigningRequests on a plane: approved, signed, and good on that plane only."""

from __future__ import annotations

import base64
import ssl
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from kvestigate import errors
from kvestigate.aio.clock import WALL
from kvestigate.client.api import Api
from kvestigate.cluster.controllers.certificates.signing import SigningController
from kvestigate.cluster.controllers.registry import CONTROLLERS
from kvestigate.cluster.controllers.runtime import Manager
from kvestigate.cluster.plane.access.authn.jwt import SigningKey
from kvestigate.cluster.plane.access.authn.plane_clients import client_authority
from kvestigate.cluster.plane.access.authn.service_accounts import TokenIssuer
from kvestigate.cluster.plane.access.authn.union import Credentials
from kvestigate.cluster.plane.model.user import AUTHENTICATED, User
from kvestigate.http.certificates import CertificateAuthority
from kvestigate.http.message import Headers, Peer, Request
from kvestigate.kube import builtins
from tests.bed import plane
from tests.cluster.controllers.conftest import Bed
from tests.signing_requests import signing_request

CSRS = builtins.resource("certificatesigningrequests")
CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
APPROVED = {"type": "Approved", "status": "True", "reason": "Test", "message": "so said a test"}
AUTHORITY = CertificateAuthority.create("server", now=datetime.now(UTC))


def request(name: str, *organizations: str, signer: str = CLIENT, **spec: Any) -> dict[str, Any]:
    usages = ["digital signature", "client auth"]
    body = {
        "request": signing_request(name, *organizations),
        "signerName": signer,
        "usages": usages,
    }
    return {"metadata": {"name": "a"}, "spec": {**body, **spec}}


def working(api: Api) -> Manager:
    def authority(signer: str) -> CertificateAuthority:
        return client_authority(AUTHORITY, "mine", datetime.now(UTC))

    names = [name for name in CONTROLLERS if name.startswith("certificatesigningrequest")]
    signing = {
        "certificatesigningrequest-signing-controller": partial(SigningController, authority)
    }
    return Manager(api, {name: CONTROLLERS[name] for name in names} | signing)


async def approve(api: Api) -> None:
    decision = {"status": {"conditions": [APPROVED]}}
    await api.patch(CSRS, "a", decision, subresource="approval")


async def test_an_approved_request_gets_a_certificate_for_its_plane() -> None:
    async with plane() as api, working(api):
        bed = Bed(api)
        await bed.create("certificatesigningrequests", request("jane", "dev"))
        await approve(api)
        found = await bed.until(
            "certificatesigningrequests", lambda found: found["a"]["status"].get("certificate")
        )
    chain = x509.load_pem_x509_certificates(base64.b64decode(found["a"]["status"]["certificate"]))
    leaf, above = chain
    leaf.verify_directly_issued_by(above)
    above.verify_directly_issued_by(x509.load_pem_x509_certificate(AUTHORITY.pair.certificate))
    usage = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [each.dotted_string for each in usage] == ["1.3.6.1.5.5.7.3.2"]
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca

    shown = Request("GET", "/", "", Headers([]), b"", Peer(certificate=_der(leaf)))
    credentials = Credentials({}, TokenIssuer(SigningKey.generate()))
    user = credentials.authenticate(shown, "mine", WALL.now)
    assert isinstance(user, User)
    assert (user.name, user.groups) == ("jane", ("dev", AUTHENTICATED))
    for _ in range(2):  # the second time, the certificate is known
        with pytest.raises(errors.Unauthorized):
            credentials.authenticate(shown, "other", WALL.now)


def _der(certificate: x509.Certificate) -> bytes:
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    return ssl.PEM_cert_to_DER_cert(pem.decode())


async def test_a_request_that_its_signer_refuses_fails() -> None:
    async with plane() as api, working(api):
        bed = Bed(api)
        await bed.create("certificatesigningrequests", request("jane", usages=["server auth"]))
        await approve(api)
        found = await bed.until(
            "certificatesigningrequests", lambda found: len(found["a"]["status"]["conditions"]) == 2
        )
    failed = found["a"]["status"]["conditions"][1]
    assert (failed["type"], failed["reason"]) == ("Failed", "SignerValidationFailure")
    assert failed["message"] == "invalid usage for client certificate: server auth"


async def test_kubelets_are_approved_if_their_makers_may() -> None:
    async with plane() as api, working(api):
        bed = Bed(api)
        body = request("system:node:n", "system:nodes", signer=KUBELET)
        await bed.create("certificatesigningrequests", body)
        found = await bed.until(
            "certificatesigningrequests",
            lambda found: found["a"].get("status", {}).get("certificate"),
        )
    condition = found["a"]["status"]["conditions"][0]
    assert (condition["type"], condition["reason"]) == ("Approved", "AutoApproved")
    assert condition["message"] == (
        "Auto approving kubelet client certificate after SubjectAccessReview."
    )

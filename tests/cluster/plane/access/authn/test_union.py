"""All the ways in."""

from __future__ import annotations

import datetime
import hashlib
import ssl

import pytest

from kvestigate.aio.clock import WALL
from kvestigate.cluster.plane.access.authn.service_accounts import TokenIssuer
from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.authn.union import Credentials
from kvestigate.cluster.plane.model.user import ANONYMOUS, AUTHENTICATED, User
from kvestigate.errors import Unauthorized
from kvestigate.http.certificates import CertificateAuthority
from kvestigate.http.message import Headers, Peer, Request

JANE = User("jane", (AUTHENTICATED,))


def request(authorization: str = "", certificate: bytes | None = None) -> Request:
    headers = Headers([("authorization", authorization)] if authorization else [])
    return Request("GET", "/", "", headers, b"", Peer(certificate=certificate))


@pytest.fixture
def credentials(issuer: TokenIssuer) -> Credentials:
    return Credentials({digest("secret"): JANE}, issuer)


@pytest.mark.parametrize("header", ["Bearer secret", "bearer secret", "Bearer  secret "])
def test_a_token_is_a_user(credentials: Credentials, header: str) -> None:
    assert credentials.authenticate(request(header), "root", WALL.now) == JANE


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer wrong", "Basic secret", "secret", "Bearer a.b.c"]
)
def test_nobody_else_gets_in(credentials: Credentials, header: str) -> None:
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        credentials.authenticate(request(header), "root", WALL.now)


def test_a_certificate_names_a_user_and_groups(credentials: Credentials) -> None:
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    authority = CertificateAuthority.create("test", now=now)
    pair = authority.issue_client("bob", ["dev", "ops"], now=now)

    certificate = ssl.PEM_cert_to_DER_cert(pair.certificate.decode())
    shown = credentials.authenticate(request(certificate=certificate), "root", WALL.now)

    digest = hashlib.sha256(certificate).hexdigest()
    extra = {"authentication.kubernetes.io/credential-id": (f"X509SHA256={digest}",)}
    assert shown == User("bob", ("dev", "ops", AUTHENTICATED), extra=extra)


def test_the_anonymous_get_in_only_where_they_may(issuer: TokenIssuer) -> None:
    open_to_all = Credentials({}, issuer, anonymous=True)

    assert open_to_all.authenticate(request(), "root", WALL.now) == ANONYMOUS
    with pytest.raises(Unauthorized):
        open_to_all.authenticate(request("Bearer wrong"), "root", WALL.now)

"""TLS between our client and our server: who is trusted, who is shown, what errors say."""

from __future__ import annotations

import asyncio
import datetime
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from kvestigate import errors
from kvestigate.http import tls
from kvestigate.http.certificates import CertificateAuthority, KeyPair, subject_of
from kvestigate.http.message import Request, Response
from kvestigate.http.server import Server, serve
from tests.http.peers import Clients, RawServers, standard_tls

SECONDS = 10.0
NOW = datetime.datetime.now(datetime.UTC)
LONG_AGO = NOW - datetime.timedelta(days=1000)
CA = CertificateAuthority.create("test CA", now=NOW)
OTHER_CA = CertificateAuthority.create("another CA", now=NOW)
LOOPBACK = CA.issue_server("server", ["127.0.0.1", "localhost"], now=NOW)


async def who(request: Request) -> Response:
    certificate = request.peer.certificate
    name, groups = subject_of(certificate) if certificate else ("nobody", ())
    return Response(200, body=f"{name} of {','.join(groups)}".encode())


async def serving(pair: KeyPair, client_ca: bytes | None = None) -> Server:
    context = tls.server_context(certificate=pair.certificate, key=pair.key, client_ca=client_ca)
    return await serve(who, tls=context)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with await serving(LOOPBACK, CA.pair.certificate) as running:
        yield running


@pytest.mark.parametrize(
    ("shown", "seen"),
    [
        (None, b"nobody of "),
        (CA.issue_client("ann", now=NOW), b"ann of "),
        (CA.issue_client("ann", ["dev", "ops"], now=NOW), b"ann of dev,ops"),
    ],
    ids=["no certificate", "name", "name and groups"],
)
async def test_the_server_sees_the_clients_certificate(
    shown: KeyPair | None, seen: bytes, server: Server, client_of: Clients
) -> None:
    context = tls.client_context(
        ca=CA.pair.certificate,
        certificate=shown.certificate if shown else None,
        key=shown.key if shown else None,
    )
    client = client_of(server.address[1], tls=context)
    assert await (await client.send(Request("GET", "/"), timeout=SECONDS)).read() == seen


async def test_a_client_certificate_of_another_ca_is_an_error_that_says_so(
    server: Server, client_of: Clients
) -> None:
    pair = OTHER_CA.issue_client("mallory", now=NOW)
    context = tls.client_context(ca=CA.pair.certificate, certificate=pair.certificate, key=pair.key)
    with pytest.raises(errors.ConnectionFailed) as caught:
        await client_of(server.address[1], tls=context).send(Request("GET", "/"), timeout=SECONDS)
    # The server's alert says so, if it is not overtaken by the end of the connection.
    assert "client certificate" in f"{caught.value.message} {caught.value.hint}"


def refuse_in_tls(listener: socket.socket) -> None:
    """Wants a client certificate; its alert may be overtaken by the reset that follows it."""
    context = standard_tls(LOOPBACK)
    context.load_verify_locations(cadata=CA.pair.certificate.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    connection, _ = listener.accept()
    with connection, pytest.raises(ssl.SSLError):
        context.wrap_socket(connection, server_side=True)


async def test_a_missing_client_certificate_is_explained(client_of: Clients) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        refusing = asyncio.create_task(asyncio.to_thread(refuse_in_tls, listener))
        context = tls.client_context(ca=CA.pair.certificate)
        client = client_of(listener.getsockname()[1], tls=context)
        with pytest.raises(errors.ConnectionFailed) as caught:
            await client.send(Request("GET", "/"), timeout=SECONDS)
        await refusing
    assert "certificate" in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize(
    ("pair", "ca", "message", "hint"),
    [
        (LOOPBACK, OTHER_CA, "issuer certificate", "give that CA's certificate"),
        (CA.issue_server("x", ["other"], now=NOW), CA, "IP address mismatch", "TLS server name"),
        (CA.issue_server("x", ["127.0.0.1"], now=LONG_AGO), CA, "expired", "clock"),
    ],
    ids=["other CA", "other name", "expired"],
)
async def test_a_certificate_that_is_not_accepted(
    pair: KeyPair, ca: CertificateAuthority, message: str, hint: str, client_of: Clients
) -> None:
    async with await serving(pair) as running:
        port = running.address[1]
        client = client_of(port, tls=tls.client_context(ca=ca.pair.certificate))
        with pytest.raises(errors.ConnectionFailed, match=message) as caught:
            await client.send(Request("GET", "/"), timeout=SECONDS)
    assert f"127.0.0.1:{port}" in caught.value.message
    assert hint in (caught.value.hint or "")


async def test_the_server_hostname_can_be_another(client_of: Clients) -> None:
    async with await serving(CA.issue_server("x", ["kubernetes"], now=NOW)) as running:
        context = tls.client_context(ca=CA.pair.certificate)
        client = client_of(running.address[1], tls=context, server_hostname="kubernetes")
        assert (await client.send(Request("GET", "/"), timeout=SECONDS)).status == 200


async def test_insecure_verifies_nothing(client_of: Clients) -> None:
    async with await serving(OTHER_CA.issue_server("x", ["other"], now=LONG_AGO)) as running:
        client = client_of(running.address[1], tls=tls.client_context(insecure=True))
        assert (await client.send(Request("GET", "/"), timeout=SECONDS)).status == 200


async def test_tls_to_a_plain_server_says_so(raw_server: RawServers, client_of: Clients) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    plain = await raw_server(script)
    client = client_of(plain.port, tls=tls.client_context(insecure=True))
    with pytest.raises(errors.ConnectionFailed, match="does not speak TLS"):
        await client.send(Request("GET", "/"), timeout=SECONDS)


BAD: dict[str, Callable[[], object]] = {
    "CA is not PEM": lambda: tls.client_context(ca=b"nonsense"),
    "CA is not ASCII": lambda: tls.client_context(ca=b"\xff"),
    "certificate without key": lambda: tls.client_context(
        insecure=True, certificate=LOOPBACK.certificate
    ),
    "key without certificate": lambda: tls.client_context(insecure=True, key=LOOPBACK.key),
    "key of another": lambda: tls.client_context(
        insecure=True, certificate=LOOPBACK.certificate, key=CA.pair.key
    ),
    "not PEM": lambda: tls.client_context(insecure=True, certificate=b"a", key=b"b"),
    "clients' CA is not PEM": lambda: tls.server_context(
        certificate=LOOPBACK.certificate, key=LOOPBACK.key, client_ca=b"nonsense"
    ),
    "server without key": lambda: tls.server_context(certificate=LOOPBACK.certificate, key=b""),
    "server with another's key": lambda: tls.server_context(
        certificate=LOOPBACK.certificate, key=CA.pair.key
    ),
    "server's is not PEM": lambda: tls.server_context(certificate=b"a", key=b"b"),
}


@pytest.mark.parametrize("name", BAD)
def test_unusable_material_is_an_input_error_with_a_hint_or_the_missing_part(name: str) -> None:
    with pytest.raises(errors.InputError) as caught:
        BAD[name]()
    assert caught.value.hint or "missing" in caught.value.message
    assert "_ssl.c" not in caught.value.message


def test_an_encrypted_key_is_an_error_not_a_prompt() -> None:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    key = load_pem_private_key(LOOPBACK.key, None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    for use in (partial(tls.client_context, insecure=True), tls.server_context):
        with pytest.raises(errors.InputError, match="cannot be used"):
            use(certificate=LOOPBACK.certificate, key=key)


def test_loading_a_key_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = open_files()
    tls.client_context(insecure=True, certificate=LOOPBACK.certificate, key=LOOPBACK.key)
    assert (list(tmp_path.iterdir()), open_files()) == ([], before)


def open_files() -> int:
    return psutil.Process().num_fds()


def test_clients_do_not_speak_old_tls() -> None:
    assert tls.client_context(insecure=True).minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
@pytest.mark.parametrize(
    ("newest", "agreed"),
    [
        (ssl.TLSVersion.TLSv1_1, "TLSV1_ALERT_PROTOCOL_VERSION"),
        (ssl.TLSVersion.TLSv1_2, "TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384 http/1.1"),
        (ssl.TLSVersion.TLSv1_3, "TLSv1.3 TLS_AES_256_GCM_SHA384 http/1.1"),
    ],
)
async def test_what_the_server_agrees_to(
    newest: ssl.TLSVersion, agreed: str, server: Server
) -> None:
    context = tls.client_context(ca=CA.pair.certificate)
    context.set_ciphers("ALL:@SECLEVEL=0")  # else a client would not even offer what is old
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = newest
    context.set_alpn_protocols(["h2", "http/1.1"])

    def agree() -> str:
        plain = socket.create_connection(server.address, timeout=SECONDS)
        try:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as client:
                cipher = client.cipher()
                assert cipher is not None
                return f"{client.version()} {cipher[0]} {client.selected_alpn_protocol()}"
        except ssl.SSLError as refused:
            return refused.reason

    assert await asyncio.to_thread(agree) == agreed


async def test_who_shows_a_certificate_can_resume_a_session(server: Server) -> None:
    pair = CA.issue_client("ann", now=NOW)
    context = tls.client_context(ca=CA.pair.certificate, certificate=pair.certificate, key=pair.key)

    def ask(before: ssl.SSLSession | None) -> ssl.SSLSocket:
        plain = socket.create_connection(server.address, timeout=SECONDS)
        client = context.wrap_socket(plain, server_hostname="127.0.0.1", session=before)
        client.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        assert client.recv(4096).endswith(b"ann of ")
        return client

    first = await asyncio.to_thread(ask, None)
    with first, await asyncio.to_thread(ask, first.session) as second:
        assert second.session_reused


def test_a_ca_can_be_kept_and_loaded_again() -> None:
    loaded = CertificateAuthority(KeyPair(CA.pair.certificate, CA.pair.key))
    pair = loaded.issue_client("bob", now=NOW)
    assert subject_of(ssl.PEM_cert_to_DER_cert(pair.certificate.decode())) == ("bob", ())


async def test_a_client_that_ignores_the_end_does_not_hold_up_the_server() -> None:
    server = await serving(LOOPBACK)
    context = tls.client_context(ca=CA.pair.certificate)

    def ask() -> ssl.SSLSocket:
        plain = socket.create_connection(server.address, timeout=SECONDS)
        client = context.wrap_socket(plain, server_hostname="127.0.0.1")
        client.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        client.recv(1)
        return client

    client = await asyncio.to_thread(ask)  # from here on it neither reads nor hangs up
    with client:
        async with asyncio.timeout(SECONDS):
            await server.close(grace=10 * SECONDS)

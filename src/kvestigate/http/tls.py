"""TLS contexts from PEM bytes, for clients and servers."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from kvestigate import errors


def client_context(
    *,
    ca: bytes | None = None,
    certificate: bytes | None = None,
    key: bytes | None = None,
    insecure: bool = False,
) -> ssl.SSLContext:
    """What a client trusts and shows. Everything is PEM; without `ca` the system's CAs count.

    `insecure` verifies nothing, neither the chain nor the name.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca is None:
        context.load_default_certs()
    else:
        _trust(context, ca)
    if certificate is not None or key is not None:
        _show(context, certificate, key)
    return context


def server_context(
    *, certificate: bytes, key: bytes, client_ca: bytes | None = None
) -> ssl.SSLContext:
    """What a server shows. With `client_ca` it asks for client certificates but requires none.

    Everything is PEM.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_ciphers("ECDHE+AESGCM:ECDHE+CHACHA20")  # of TLS 1.2
    # A client that offers only other protocols may still try: the handshake goes on without one.
    context.set_alpn_protocols(["http/1.1"])
    context.sslobject_class = _ServerSide
    _show(context, certificate, key)
    if client_ca is not None:
        _trust(context, client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


class _ServerSide(ssl.SSLObject):
    """The server's end of a connection, whose client is told why a handshake failed.

    Event loops close a connection whose handshake fails and drop the alert that OpenSSL has
    written for the client: "unknown CA" or "protocol version", which kubectl prints. So the first
    failure is reported as a wait for more input, before which loops send what is written. The
    client then closes the connection; if it sends something instead, the failure is reported.
    """

    _failure: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            super().do_handshake()
        except ssl.SSLWantReadError:
            raise
        except ssl.SSLError as failure:
            self._failure = failure
            raise ssl.SSLWantReadError from failure


def _trust(context: ssl.SSLContext, ca: bytes) -> None:
    try:
        context.load_verify_locations(cadata=ca.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError) as failure:
        raise errors.InputError(
            f"the CA is not a PEM certificate: {_reason(failure)}",
            hint="it starts with -----BEGIN CERTIFICATE-----",
        ) from failure


def _show(context: ssl.SSLContext, certificate: bytes | None, key: bytes | None) -> None:
    if not certificate or not key:
        missing = "key" if certificate else "certificate"
        raise errors.InputError(
            f"a certificate and its key belong together: the {missing} is missing"
        )
    try:
        with _private_file(certificate + b"\n" + key) as path:
            # A password prompt would block forever; an encrypted key fails instead.
            context.load_cert_chain(path, password=_no_password)
    except (ssl.SSLError, ValueError) as failure:
        raise errors.InputError(
            f"the certificate and key cannot be used: {_reason(failure)}",
            hint="both are PEM, the key is not encrypted and belongs to the certificate",
        ) from failure


def _no_password() -> str:
    raise ValueError("the key is encrypted")


def _reason(failure: Exception) -> str:
    if not isinstance(failure, ssl.SSLError):
        return str(failure)
    # Without a reason OpenSSL names only the place in its own source, which helps nobody.
    return (failure.reason or "not PEM").replace("_", " ").lower()


@contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    """A path OpenSSL can read `content` from: in memory on Linux, else gone at once."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("tls", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        import tempfile

        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name

"""TLS contexts from PEM bytes, for clients: see `channel` for those of servers."""

from __future__ import annotations

import os
import ssl
import tempfile
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


def unusable_ca(reason: str) -> errors.InputError:
    return errors.InputError(
        f"the CA is not a PEM certificate: {reason}",
        hint="it starts with -----BEGIN CERTIFICATE-----",
    )


def half_a_pair(certificate: bytes | None) -> errors.InputError:
    missing = "key" if certificate else "certificate"
    return errors.InputError(f"a certificate and its key belong together: the {missing} is missing")


def unusable_pair(reason: str) -> errors.InputError:
    return errors.InputError(
        f"the certificate and key cannot be used: {reason}",
        hint="both are PEM, the key is not encrypted and belongs to the certificate",
    )


def _trust(context: ssl.SSLContext, ca: bytes) -> None:
    try:
        context.load_verify_locations(cadata=ca.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError) as failure:
        raise unusable_ca(_reason(failure)) from failure


def _show(context: ssl.SSLContext, certificate: bytes | None, key: bytes | None) -> None:
    if not certificate or not key:
        raise half_a_pair(certificate)
    try:
        with _private_file(certificate + b"\n" + key) as path:
            # A password prompt would block forever; an encrypted key fails instead.
            context.load_cert_chain(path, password=_no_password)
    except (ssl.SSLError, ValueError) as failure:
        raise unusable_pair(_reason(failure)) from failure


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
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name

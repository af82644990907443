"""TLS of a server's connections, by the OpenSSL that `cryptography` brings along.

The standard library's `ssl` is as fast as the OpenSSL that its interpreter was built with, which
on most systems is years old and does not know the vector instructions for AES. Only servers
speak this way: importing it takes a while.
"""

from __future__ import annotations

import os
import socket
from typing import Any, NoReturn, TypeAlias

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.bindings.openssl.binding import Binding
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from OpenSSL import SSL
from OpenSSL.crypto import X509

from kvestigate.http.tls import half_a_pair, unusable_ca, unusable_pair

RECORD = 16 * 1024
"""The most that one TLS record holds."""

ServerContext: TypeAlias = SSL.Context
Place: TypeAlias = Any
"""Memory for one record."""

_CIPHERS_1_2 = b"ECDHE+AESGCM:ECDHE+CHACHA20"
# In the order of Go, and so of every other server of Kubernetes.
_CIPHERS_1_3 = b"TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

_library: Any = Binding.lib
_read, _write = _library.SSL_read, _library.SSL_write
_new, _content, _pointer = Binding.ffi.new, Binding.ffi.buffer, Binding.ffi.from_buffer


class TlsError(OSError):
    """What the client says is not what TLS allows."""


class WantRead(BlockingIOError):
    """Nothing has come that could be gone on with."""


class WantWrite(BlockingIOError):
    """The kernel has no room for what is to be sent."""


class Channel:
    """An accepted connection, which does not block.

    Whatever goes wrong is an OSError, also that there is nothing to read or no room to write. Not
    only reading may want the one and writing the other: a client can ask for new keys.
    """

    __slots__ = ("_connection", "_place", "_pointer", "_socket", "fileno", "setsockopt")

    def __init__(self, context: ServerContext, accepted: socket.socket, place: Place) -> None:
        self._connection = SSL.Connection(context, accepted)
        self._connection.set_accept_state()
        # pyOpenSSL's own reading and writing take twice as long as OpenSSL's for small requests:
        # they copy, and look for errors where there are none.
        self._pointer: Any = self._connection._ssl
        self._place = place
        self._socket = accepted
        self.fileno = accepted.fileno
        self.setsockopt = accepted.setsockopt

    def shake_hands(self) -> None:
        try:
            self._connection.do_handshake()
        except SSL.Error as failure:
            self._explain(failure)

    @property
    def peer_address(self) -> object:
        try:
            return self._socket.getpeername()
        except OSError:  # it has gone again
            return None

    @property
    def peer_certificate(self) -> bytes | None:
        """In DER."""
        shown = self._connection.get_peer_certificate(as_cryptography=True)
        return None if shown is None else shown.public_bytes(Encoding.DER)

    def read(self) -> bytes:
        """The next record, or what of it is left; empty: there will be none."""
        count: int = _read(self._pointer, self._place, RECORD)
        if count > 0:
            record: bytes = _content(self._place, count)[:]
            return record
        try:
            self._connection._raise_ssl_error(self._pointer, count)
        except SSL.ZeroReturnError:
            return b""
        except SSL.Error as failure:
            if failure.args[:1] == (_NO_FAREWELL,):
                return b""
            self._explain(failure)
        return b""

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """How much of it there was room for. The rest has to be given again, or more."""
        if type(data) is bytes:
            count: int = _write(self._pointer, data, len(data))
        else:
            # Let go at once: a pointer that is found by the garbage collector together with its
            # memoryview takes the process down.
            with _pointer(data) as given:
                count = _write(self._pointer, given, len(data))
        if count <= 0:
            try:
                self._connection._raise_ssl_error(self._pointer, count)
            except SSL.Error as failure:
                self._explain(failure)
        return count

    def say_farewell(self) -> bool:
        """Whether the client has said so, too."""
        try:
            return self._connection.shutdown()
        except SSL.WantReadError:
            return False
        except SSL.Error as failure:
            self._explain(failure)

    def close(self) -> None:
        # OpenSSL knows the socket by its number, which may soon be another connection's.
        self._connection.set_shutdown(SSL.SENT_SHUTDOWN | SSL.RECEIVED_SHUTDOWN)
        self._socket.close()

    @staticmethod
    def _explain(failure: SSL.Error) -> NoReturn:
        if isinstance(failure, SSL.WantReadError):
            raise WantRead from None
        if isinstance(failure, SSL.WantWriteError):
            raise WantWrite from None
        if isinstance(failure, SSL.SysCallError) and failure.args[0] != _NO_FAREWELL:
            number = failure.args[0]
            raise OSError(number, os.strerror(number)) from failure
        raise TlsError(_reason(failure)) from failure


_NO_FAREWELL = -1
"""pyOpenSSL's number of an end that TLS was not told of."""


def new_place() -> Place:
    """Where channels read into that are never read at once, so that one place is enough."""
    return _new("char[]", RECORD)


def server_context(
    *, certificate: bytes, key: bytes, client_ca: bytes | None = None
) -> ServerContext:
    """What a server shows; with `client_ca` it asks for client certificates, requiring none.

    Everything is PEM.
    """
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_options(SSL.OP_CIPHER_SERVER_PREFERENCE | SSL.OP_NO_RENEGOTIATION)
    context.set_cipher_list(_CIPHERS_1_2)
    context.set_tls13_ciphersuites(_CIPHERS_1_3)
    # A write is more than one record, and who is silent keeps no buffers.
    context.clear_mode(_library.SSL_MODE_ENABLE_PARTIAL_WRITE)
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)
    context.set_alpn_select_callback(_choose)
    # Without it, who shows a certificate cannot resume a session.
    context.set_session_id(b"kvestigate")
    _show(context, certificate, key)
    if client_ca is not None:
        _trust(context, client_ca)
    return context


def _choose(_: SSL.Connection, offered: list[bytes]) -> Any:
    """The server speaks nothing else; who offers something else may still try."""
    return _HTTP if _HTTP in offered else SSL.NO_OVERLAPPING_PROTOCOLS


_HTTP = b"http/1.1"


def _show(context: ServerContext, certificate: bytes, key: bytes) -> None:
    if not certificate or not key:
        raise half_a_pair(certificate)
    try:
        own, *others = x509.load_pem_x509_certificates(certificate)
        context.use_certificate(own)
        for other in others:
            context.add_extra_chain_cert(other)
        # A key that is encrypted fails: a prompt for its password would block forever.
        own_key: Any = load_pem_private_key(key, password=None)
        context.use_privatekey(own_key)
        context.check_privatekey()
    except (SSL.Error, ValueError, TypeError, UnsupportedAlgorithm) as failure:
        raise unusable_pair(_reason(failure)) from failure


def _trust(context: ServerContext, ca: bytes) -> None:
    store = context.get_cert_store()
    assert store is not None
    try:
        for certificate in x509.load_pem_x509_certificates(ca):
            store.add_cert(X509.from_cryptography(certificate))
    except ValueError as failure:
        raise unusable_ca(_reason(failure)) from failure
    context.set_verify(SSL.VERIFY_PEER)


def _reason(failure: Exception) -> str:
    """In a few words: OpenSSL names also the place in its own source, which helps nobody."""
    if not isinstance(failure, SSL.Error):
        return str(failure).partition(".")[0]
    queue = failure.args[0] if failure.args else ()
    reasons = [entry[2] for entry in queue if entry[2]] if isinstance(queue, list) else []
    return reasons[-1] if reasons else "the connection ended"

"""Whole answers, one after the other, read with as little as Python can do it with.

What a client spends on an answer of megabytes adds to how long it takes, though it says nothing
of the server: this one counts the bytes and keeps none of them.
"""

from __future__ import annotations

import socket
import ssl
from types import TracebackType

import httptools

from bench.frame import BenchFailed
from bench.rates import Target

_RECORD = 16 * 1024
"""The most that one read of a TLS connection gives."""
_TIMEOUT = 120.0


class Fetcher:
    """One connection to a server, as the target's user."""

    def __init__(self, target: Target) -> None:
        self._target = target
        context = ssl.create_default_context(cafile=str(target.ca))
        plain = socket.create_connection(("127.0.0.1", target.port), _TIMEOUT)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = context.wrap_socket(plain, server_hostname="127.0.0.1")
        self._buffer = memoryview(bytearray(_RECORD))

    def __enter__(self) -> Fetcher:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def get(self, path: str) -> int:
        """The length of the answer's body."""
        self._socket.sendall(
            f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\n"
            f"authorization: Bearer {self._target.token}\r\nuser-agent: bench\r\n\r\n".encode()
        )
        answer = _Answer()
        parser = httptools.HttpResponseParser(answer)
        while not answer.complete:
            count = self._socket.recv_into(self._buffer)
            if not count:
                raise BenchFailed(f"{self._target.name} closed the connection")
            parser.feed_data(self._buffer[:count])
        if (status := parser.get_status_code()) != 200:
            raise BenchFailed(f"{self._target.name}: GET {path}: {status}")
        return answer.length


class _Answer:
    """What httptools tells of an answer."""

    def __init__(self) -> None:
        self.length = 0
        self.complete = False

    def on_body(self, piece: bytes) -> None:
        self.length += len(piece)

    def on_message_complete(self) -> None:
        self.complete = True

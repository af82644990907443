"""A proxy that knows one method, CONNECT, and remembers where it was asked to go."""

from __future__ import annotations

import selectors
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Tunnel(socketserver.ThreadingTCPServer):
    daemon_threads = False
    block_on_close = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Connect)
        self.targets: list[str] = []
        self.open: set[socket.socket] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def cut(self) -> None:
        """Break every connection, as a network does: without a word."""
        for each in list(self.open):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # ended on its own


class _Connect(socketserver.StreamRequestHandler):
    server: Tunnel

    def handle(self) -> None:
        method, target, _ = self.rfile.readline().decode().split()
        while self.rfile.readline().strip():
            pass
        if method != "CONNECT":
            self.wfile.write(b"HTTP/1.1 405 Method Not Allowed\r\n\r\n")
            return
        self.server.targets.append(target)
        host, _, port = target.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=10) as beyond:
            self.server.open |= {self.connection, beyond}
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            _splice(self.connection, beyond)


def _splice(near: socket.socket, far: socket.socket) -> None:
    """Copy both ways until either side ends."""
    with selectors.DefaultSelector() as ready:
        ready.register(near, selectors.EVENT_READ, far)
        ready.register(far, selectors.EVENT_READ, near)
        while True:
            for key, _ in ready.select():
                source, target = key.fileobj, key.data
                assert isinstance(source, socket.socket)
                try:
                    data = source.recv(65536)
                    if not data:
                        return
                    target.sendall(data)
                except OSError:
                    return


@contextmanager
def tunnel() -> Iterator[Tunnel]:
    with Tunnel() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            server.cut()
            thread.join()

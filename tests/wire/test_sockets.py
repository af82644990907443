"""Sockets hold back what is written only while they are told to."""

from __future__ import annotations

import socket

import pytest

from kvestigate.wire import sockets


@pytest.mark.skipif(not hasattr(socket, "TCP_CORK"), reason="only Linux can")
def test_what_is_written_is_held_until_it_is_let_go() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname(), timeout=30) as sender,
    ):
        receiver, _ = listening.accept()
        with receiver:
            sockets.hold(sender, held=True)
            assert sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CORK)
            sender.send(b"a")
            sender.send(b"b")
            sockets.hold(sender, held=False)
            assert not sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CORK)
            assert receiver.recv(10) == b"ab"


def test_what_cannot_hold_anything_is_left_alone() -> None:
    one, other = socket.socketpair()
    with one, other:
        sockets.hold(one, held=True)
    sockets.hold(one, held=False)
    sockets.hold(None, held=True)

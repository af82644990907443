"""As much of torch.distributed as makes ranks talk: sockets between them, through the first."""

from __future__ import annotations

import os
import socket
import time

_SECONDS = 60
_peers: list[socket.socket] = []


def get_rank() -> int:
    return int(os.environ["RANK"])


def get_world_size() -> int:
    return int(os.environ["WORLD_SIZE"])


def init_process_group() -> None:
    """Meet all other ranks at MASTER_ADDR:MASTER_PORT."""
    port = int(os.environ["MASTER_PORT"])
    if get_rank() == 0:
        with socket.create_server(("", port), backlog=get_world_size()) as server:
            server.settimeout(_SECONDS)
            _peers.extend(server.accept()[0] for _ in range(get_world_size() - 1))
    else:
        _peers.append(_connected(os.environ["MASTER_ADDR"], port))
    for peer in _peers:
        peer.settimeout(_SECONDS)


def all_reduce(value: int) -> int:
    """The sum of what all ranks have."""
    if get_rank() == 0:
        total = value + sum(_receive(peer) for peer in _peers)
        for peer in _peers:
            _send(peer, total)
        return total
    _send(_peers[0], value)
    return _receive(_peers[0])


def destroy_process_group() -> None:
    while _peers:
        _peers.pop().close()


def _connected(host: str, port: int) -> socket.socket:
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            return socket.create_connection((host, port), _SECONDS)
        except OSError:  # neither the name nor the server need be there yet
            if time.monotonic() >= deadline:
                raise
            os.sched_yield()


def _send(peer: socket.socket, value: int) -> None:
    peer.sendall(value.to_bytes(8, "big"))


def _receive(peer: socket.socket) -> int:
    return int.from_bytes(peer.recv(8, socket.MSG_WAITALL), "big")

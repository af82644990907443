"""Answers the kernel when a container binds, connects or sends: one loop for all pods. Linux."""

from __future__ import annotations

import asyncio
import errno
import os
import select
import socket

from kvestigate.cluster.node.hosts import seccomp, syscalls
from kvestigate.cluster.node.hosts.seccomp import Notice
from kvestigate.cluster.node.net import sockets
from kvestigate.cluster.node.net.routing import UDP, PodRoutes, Route
from kvestigate.cluster.node.net.translation import Address, read_address

_LONGEST_NAME = 28
"""Bytes of a `sockaddr_in6`."""
_LONGEST_DATAGRAM = 65535


class Warden:
    """Watches listeners until their last process is gone, or until closed."""

    def __init__(self) -> None:
        numbers = syscalls.numbers()
        assert numbers is not None
        self._calls = numbers
        self._watched: set[int] = set()
        self._tasks: dict[asyncio.Task[None], tuple[int, Notice]] = {}
        """Connections that are being made, and for whom."""

    def watch(self, listener: int, pod: PodRoutes) -> None:
        """Answer what is told on `listener`, which is ours from now on."""
        self._watched.add(listener)
        asyncio.get_running_loop().add_reader(listener, self._hear, listener, pod)

    def close(self) -> None:
        """Whoever calls from now on waits for the next warden, if a shim keeps its listener."""
        for task, (listener, notice) in self._tasks.items():
            task.cancel()
            if listener in self._watched:
                seccomp.answer(listener, notice, -errno.ECONNREFUSED)
        for listener in list(self._watched):
            self._drop(listener)

    def _drop(self, listener: int) -> None:
        self._watched.discard(listener)
        asyncio.get_running_loop().remove_reader(listener)
        os.close(listener)

    def _hear(self, listener: int, pod: PodRoutes) -> None:
        notice = seccomp.receive(listener)
        if notice is None:
            if _is_over(listener):
                self._drop(listener)
            return
        try:
            ours = self._answer(listener, notice, pod)
        except OSError:
            ours = False  # the caller was killed, or its memory is not ours to read
        if not ours:
            seccomp.proceed(listener, notice)

    def _answer(self, listener: int, notice: Notice, pod: PodRoutes) -> bool:
        """Do the call if it concerns us; False if the kernel is to do it."""
        wanted = _address(notice, sending=notice.number == self._calls.sendto)
        if wanted is None:
            return False
        if notice.number == self._calls.bind:
            return self._bind(listener, notice, pod, wanted)
        if not pod.concerns(wanted):
            return False
        sock = _socket_of(notice)
        route = pod.route(wanted, sockets.protocol(sock))
        if route is None or not seccomp.still_waits(listener, notice):
            sock.close()
            return False
        if notice.number == self._calls.connect:
            work = self._connect(listener, notice, sock, route, _source(pod, route))
            task = asyncio.ensure_future(work)
            self._tasks[task] = (listener, notice)
            task.add_done_callback(self._tasks.pop)
            return True
        with sock:
            if sockets.protocol(sock) != UDP or not route.places:
                return False
            _, start, length, flags, _, _ = notice.arguments
            data = seccomp.memory(notice.pid, start, min(length, _LONGEST_DATAGRAM))
            sent = sockets.send(sock, data, flags, route.places[0], _source(pod, route))
            seccomp.answer(listener, notice, sent)
        return True

    def _bind(self, listener: int, notice: Notice, pod: PodRoutes, wanted: Address) -> bool:
        place = pod.binding(wanted)
        if place is None:
            return False
        with _socket_of(notice) as sock:
            kind = sockets.protocol(sock)
            if not kind or not seccomp.still_waits(listener, notice):
                return False
            result = sockets.bind(sock, place)
            if kind == UDP and not result:
                pod.datagram_ports.add(sock.getsockname()[1])
        seccomp.answer(listener, notice, result)
        return True

    async def _connect(
        self, listener: int, notice: Notice, sock: socket.socket, route: Route, source: str
    ) -> None:
        try:
            with sock:
                result = await sockets.connect(sock, route, source)
        except OSError as failure:
            result = -(failure.errno or errno.EINVAL)
        if listener in self._watched:
            seccomp.answer(listener, notice, result)


def _address(notice: Notice, *, sending: bool) -> Address | None:
    start, length = notice.arguments[4:6] if sending else notice.arguments[1:3]
    length = min(length & 0xFFFFFFFF, _LONGEST_NAME)
    return read_address(seccomp.memory(notice.pid, start, length)) if start and length else None


def _socket_of(notice: Notice) -> socket.socket:
    """The caller's own socket, held by us too."""
    number = notice.arguments[0] & 0xFFFFFFFF
    return socket.socket(fileno=seccomp.descriptor_of(notice.pid, number))


def _source(pod: PodRoutes, route: Route) -> str:
    return pod.machine_ip if route.from_pod and not pod.host_network else ""


def _is_over(listener: int) -> bool:
    """Whether all processes behind the listener have ended."""
    poll = select.poll()
    poll.register(listener, 0)
    return any(events & select.POLLHUP for _, events in poll.poll(0))

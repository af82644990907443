"""The cluster's DNS: answers for its own names, asks the machine's name servers for all others."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence

from kvestigate.cluster.node.net import dns_message as dns
from kvestigate.cluster.node.net import zone
from kvestigate.cluster.node.net.dns_message import BadMessage, Code, Question, Type
from kvestigate.cluster.node.net.services import Services
from kvestigate.cluster.node.net.translation import DNS_PORT, Address

_HOST = "127.0.0.1"
_UPSTREAM_SECONDS = 2.0
_IDLE_SECONDS = 10.0
"""How long a TCP connection may be silent."""
_MOST = 512
"""Questions that wait for an answer at once; further ones are dropped, and asked again."""


class DnsServer:
    """Listens on a port of the machine's loopback that the system chooses."""

    def __init__(self, services: Services, upstream: Sequence[str]) -> None:
        """`upstream` are the addresses of other name servers."""
        self._services = services
        self._upstream = tuple(upstream)
        self._tasks: set[asyncio.Task[None]] = set()
        self._datagrams: asyncio.DatagramTransport | None = None
        self._streams: asyncio.Server | None = None

    async def open(self) -> Address:
        """The same port for datagrams and streams."""
        self._streams = await asyncio.start_server(self._converse, _HOST, 0)
        port = self._streams.sockets[0].getsockname()[1]
        loop = asyncio.get_running_loop()
        self._datagrams, _ = await loop.create_datagram_endpoint(
            lambda: _Datagrams(self), local_addr=(_HOST, port)
        )
        return Address(_HOST, port)

    async def aclose(self) -> None:
        if self._datagrams is not None:
            self._datagrams.close()
        if self._streams is not None:
            self._streams.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def take(self, message: bytes, client: tuple[str, int]) -> None:
        """A datagram came."""
        if len(self._tasks) < _MOST:
            self._own(asyncio.ensure_future(self._reply(message, client)))

    def _own(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reply(self, message: bytes, client: tuple[str, int]) -> None:
        reply = await self.answer(message, datagram=True)
        if self._datagrams is not None and not self._datagrams.is_closing():
            self._datagrams.sendto(reply, client)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._own(task)
        try:
            while True:
                async with asyncio.timeout(_IDLE_SECONDS):
                    (length,) = struct.unpack("!H", await reader.readexactly(2))
                    message = await reader.readexactly(length)
                reply = await self.answer(message, datagram=False)
                writer.write(struct.pack("!H", len(reply)) + reply)
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            pass  # the client has gone, or asks no more
        finally:
            writer.close()

    async def answer(self, message: bytes, *, datagram: bool) -> bytes:
        try:
            question = dns.read_question(message)
        except BadMessage:
            return dns.failure(message, Code.FORMAT_ERROR)
        if question.opcode:
            return dns.failure(message, Code.NOT_IMPLEMENTED)
        found = zone.look_up(self._services, question.name, question.type)
        if found is None:
            asked = await self._ask_upstream(message, datagram=datagram)
            return asked or dns.response(question, Code.FAILED)
        records = found.records
        if found.alias:
            records += await self._addresses(question, found.alias)
        # Without one, a resolver would ask again and again for what is not there.
        authority = () if records else (dns.soa(zone.DOMAIN),)
        limit = question.limit if datagram else None
        return dns.response(question, found.code, records, authority, limit=limit)

    async def _addresses(self, question: Question, name: str) -> tuple[dns.Record, ...]:
        """What a name outside of the cluster stands for."""
        if question.type not in (Type.A, Type.AAAA):
            return ()
        header = struct.pack("!6H", question.id, 0x0100, 1, 0, 0, 0)
        query = header + dns.encode_name(name) + struct.pack("!HH", question.type, 1)
        asked = await self._ask_upstream(query, datagram=True)
        try:
            found = dns.read_records(asked) if asked else []
        except BadMessage:
            return ()
        return tuple(dns.Record(one.type, one.data, name, one.ttl) for one in found)

    async def _ask_upstream(self, message: bytes, *, datagram: bool) -> bytes:
        """Empty when no other server answers."""
        for server in self._upstream:
            ask = _ask if datagram else _ask_over_stream
            try:
                async with asyncio.timeout(_UPSTREAM_SECONDS):
                    return await ask(server, message)
            except (TimeoutError, OSError, asyncio.IncompleteReadError):
                continue
        return b""


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, server: DnsServer) -> None:
        self._server = server

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._server.take(data, addr)


class _Inquiry(asyncio.DatagramProtocol):
    """One question to another server."""

    def __init__(self, id: bytes) -> None:
        self._id = id
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if data[:2] == self._id and not self.answer.done():
            self.answer.set_result(data)

    def error_received(self, exc: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(exc)


async def _ask(server: str, message: bytes) -> bytes:
    loop = asyncio.get_running_loop()
    transport, inquiry = await loop.create_datagram_endpoint(
        lambda: _Inquiry(message[:2]), remote_addr=_at(server)
    )
    try:
        transport.sendto(message)
        return await inquiry.answer
    finally:
        transport.close()


async def _ask_over_stream(server: str, message: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(*_at(server))
    try:
        writer.write(struct.pack("!H", len(message)) + message)
        (length,) = struct.unpack("!H", await reader.readexactly(2))
        return await reader.readexactly(length)
    finally:
        writer.close()


def _at(server: str) -> tuple[str, int]:
    """`ADDRESS`, or `ADDRESS#PORT`."""
    host, _, port = server.partition("#")
    return host, int(port) if port else DNS_PORT

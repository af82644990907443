"""The cluster's DNS over real sockets, with another server behind it."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from typing import cast

import pytest

from kvestigate.cluster.node.net import dns_message as dns
from kvestigate.cluster.node.net.dns_message import Code, Type
from kvestigate.cluster.node.net.dns_server import DnsServer
from kvestigate.cluster.node.net.translation import Address
from tests.cluster.node.net.conftest import WEB, endpoint, service, services_of, slice_of
from tests.cluster.node.net.test_dns_message import Read, query, read

SECONDS = 10.0
MANY = [f"10.244.3.{number}" for number in range(2, 120)]


class _World(asyncio.DatagramProtocol):
    """Knows one address for every name."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        question = dns.read_question(data)
        self._transport.sendto(dns.response(question, Code.OK, [dns.a("192.0.2.7")]), addr)


@pytest.fixture
async def upstream() -> AsyncIterator[str]:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(_World, local_addr=("127.0.0.1", 0))
    yield f"127.0.0.1#{transport.get_extra_info('sockname')[1]}"
    transport.close()


@pytest.fixture
async def place(upstream: str) -> AsyncIterator[Address]:
    services = services_of(
        service("web", clusterIP="10.0.0.9", ports=WEB),
        service("many", clusterIP="None", ports=WEB),
        slice_of("many", *map(endpoint, MANY)),
        service("outside", type="ExternalName", externalName="example.org"),
    )
    server = DnsServer(services, [upstream])
    yield await server.open()
    await server.aclose()


class _Asking(asyncio.DatagramProtocol):
    def __init__(self) -> None:
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.answer.set_result(data)


async def by_datagram(place: Address, message: bytes) -> Read:
    loop = asyncio.get_running_loop()
    transport, asking = await loop.create_datagram_endpoint(
        _Asking, remote_addr=(place.ip, place.port)
    )
    try:
        transport.sendto(message)
        async with asyncio.timeout(SECONDS):
            return read(await asking.answer)
    finally:
        transport.close()


async def by_stream(place: Address, *messages: bytes) -> list[Read]:
    reader, writer = await asyncio.open_connection(place.ip, place.port)
    found = []
    async with asyncio.timeout(SECONDS):
        for message in messages:
            writer.write(struct.pack("!H", len(message)) + message)
            (length,) = struct.unpack("!H", await reader.readexactly(2))
            found.append(read(await reader.readexactly(length)))
    writer.close()
    await writer.wait_closed()
    return found


async def test_its_own_names_are_answered(place: Address) -> None:
    found = await by_datagram(place, query("web.default.svc.cluster.local"))
    assert [one[2] for one in found.answers] == [bytes((10, 0, 0, 9))]
    assert found.flags & 0xF == Code.OK


async def test_absence_says_how_long_it_lasts(place: Address) -> None:
    found = await by_datagram(place, query("nobody.default.svc.cluster.local"))
    assert found.flags & 0xF == Code.NO_SUCH_NAME
    assert [one[1] for one in found.authority] == [Type.SOA]


async def test_other_names_are_asked_for_elsewhere(place: Address) -> None:
    found = await by_datagram(place, query("example.com"))
    assert [one[2] for one in found.answers] == [bytes((192, 0, 2, 7))]


async def test_an_alias_comes_with_what_it_stands_for(place: Address) -> None:
    found = await by_datagram(place, query("outside.default.svc.cluster.local"))
    assert [(one[0], one[1]) for one in found.answers] == [
        ("outside.default.svc.cluster.local", Type.CNAME),
        ("example.org", Type.A),
    ]


async def test_what_is_too_long_for_a_datagram_comes_as_a_stream(place: Address) -> None:
    message = query("many.default.svc.cluster.local")
    assert (await by_datagram(place, message)).answers == []
    first, second = await by_stream(place, message, query("web.default.svc.cluster.local"))
    assert len(first.answers) == len(MANY)
    assert len(second.answers) == 1


async def test_nonsense_is_refused(place: Address) -> None:
    found = await by_datagram(place, b"\x12\x34nonsense")
    assert (found.id, found.flags & 0xF) == (0x1234, Code.FORMAT_ERROR)


async def test_without_others_to_ask_the_answer_is_a_failure() -> None:
    server = DnsServer(services_of(), [])
    found = read(await server.answer(query("example.com"), datagram=True))
    assert found.flags & 0xF == Code.FAILED

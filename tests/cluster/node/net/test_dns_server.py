"""The cluster's DNS over real sockets, with another server behind it."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from typing import cast

import pytest
from dns import message as messages
from dns import rrset
from dns.rcode import Rcode
from dns.rdatatype import RdataType
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cluster.node.net.dns_server import DnsServer
from kvestigate.cluster.node.net.translation import Address
from tests.cluster.node.net.conftest import WEB, endpoint, service, services_of, slice_of
from tests.cluster.node.net.dns_reader import Read, query, read

SECONDS = 10.0
MANY = [f"10.244.3.{number}" for number in range(2, 120)]


class _World(asyncio.DatagramProtocol):
    """Knows one address for every name."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        reply = messages.make_response(messages.from_wire(data))
        (question,) = reply.question
        reply.answer.append(rrset.from_text(question.name, 5, "IN", "A", "192.0.2.7"))
        self._transport.sendto(reply.to_wire(), addr)


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
    assert found.flags & 0xF == Rcode.NOERROR


async def test_absence_says_how_long_it_lasts(place: Address) -> None:
    found = await by_datagram(place, query("nobody.default.svc.cluster.local"))
    assert found.flags & 0xF == Rcode.NXDOMAIN
    assert [one[1] for one in found.authority] == [RdataType.SOA]


async def test_other_names_are_asked_for_elsewhere(place: Address) -> None:
    found = await by_datagram(place, query("example.com"))
    assert [one[2] for one in found.answers] == [bytes((192, 0, 2, 7))]


async def test_an_alias_comes_with_what_it_stands_for(place: Address) -> None:
    found = await by_datagram(place, query("outside.default.svc.cluster.local"))
    assert [(one[0], one[1]) for one in found.answers] == [
        ("outside.default.svc.cluster.local", RdataType.CNAME),
        ("example.org", RdataType.A),
    ]


async def test_what_is_too_long_for_a_datagram_comes_as_a_stream(place: Address) -> None:
    message = query("many.default.svc.cluster.local")
    assert (await by_datagram(place, message)).answers == []
    first, second = await by_stream(place, message, query("web.default.svc.cluster.local"))
    assert len(first.answers) == len(MANY)
    assert len(second.answers) == 1


async def test_nonsense_is_refused(place: Address) -> None:
    found = await by_datagram(place, b"\x12\x34nonsense")
    assert (found.id, found.flags & 0xF) == (0x1234, Rcode.FORMERR)


async def test_without_others_to_ask_the_answer_is_a_failure() -> None:
    server = DnsServer(services_of(), [])
    found = read(await server.answer(query("example.com"), datagram=True))
    assert found.flags & 0xF == Rcode.SERVFAIL


labels = st.from_regex(r"[a-z0-9_]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
names = st.lists(labels, min_size=1, max_size=6).map(".".join)


def answer(message: bytes) -> bytes:
    """What a server without Services, and without others to ask, says."""
    return asyncio.run(DnsServer(services_of(), []).answer(message, datagram=True))


@given(names, st.sampled_from(["A", "AAAA", "SRV", "TXT"]), st.integers(0, 65535))
def test_the_question_comes_back_letter_by_letter(name: str, kind: str, id: int) -> None:
    message = query(f"{name.upper()}.Cluster.Local", RdataType[kind], id=id)
    reply = answer(message)
    assert reply[12 : len(message)] == message[12:]
    assert (read(reply).id, read(reply).flags & 0xF) == (id, Rcode.NXDOMAIN)


@given(st.binary(max_size=100))
def test_any_bytes_are_answered(message: bytes) -> None:
    assert read(answer(message)).flags & 0x8000


@given(st.data())
def test_a_damaged_question_is_answered(data: st.DataObject) -> None:
    message = bytearray(query("web.default.svc.cluster.local", extended=1232))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(message) - 1))
        message[at] = data.draw(st.integers(0, 255))
    assert read(answer(bytes(message))).flags & 0x8000


def test_a_question_with_thousands_of_records_is_not_read() -> None:
    record = b"\0" + struct.pack("!HHIH", 1, 1, 0, 4) + b"\1\2\3\4"
    message = bytearray(query("web.default.svc.cluster.local") + record * 4000)
    message[10:12] = struct.pack("!H", 4000)
    assert read(answer(bytes(message))).flags & 0xF == Rcode.FORMERR


def test_an_answer_is_not_answered_as_if_it_were_a_question() -> None:
    message = bytearray(query("web.default.svc.cluster.local"))
    message[2] |= 0x80
    assert read(answer(bytes(message))).flags & 0xF == Rcode.FORMERR


@pytest.mark.parametrize(("extended", "limit"), [(0, 512), (100, 512), (900, 900), (4096, 1232)])
async def test_what_does_not_fit_a_datagram_says_so(extended: int, limit: int) -> None:
    message = query("many.default.svc.cluster.local", extended=extended)
    services = services_of(
        service("many", clusterIP="None", ports=WEB), slice_of("many", *map(endpoint, MANY))
    )
    cut = await DnsServer(services, []).answer(message, datagram=True)
    assert len(cut) <= limit
    assert read(cut).flags & 0x0200
    assert read(cut).answers == []
    whole = await DnsServer(services, []).answer(message, datagram=False)
    assert not read(whole).flags & 0x0200
    assert len(read(whole).answers) == len(MANY)

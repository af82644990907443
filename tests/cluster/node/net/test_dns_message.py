"""DNS messages, held against a reader of their own."""

from __future__ import annotations

import struct
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cluster.node.net import dns_message as dns
from kvestigate.cluster.node.net.dns_message import BadMessage, Code, Record, Type


def query(name: str, kind: int = Type.A, *, extended: int = 0, id: int = 7) -> bytes:
    header = struct.pack("!6H", id, 0x0100, 1, 0, 0, 1 if extended else 0)
    options = b"\0" + struct.pack("!HHIH", 41, extended, 0, 0) if extended else b""
    return header + dns.encode_name(name) + struct.pack("!HH", kind, 1) + options


class Read(NamedTuple):
    id: int
    flags: int
    answers: list[tuple[str, int, bytes]]
    authority: list[tuple[str, int, bytes]]


def read(message: bytes) -> Read:
    """A response in full, pointers followed."""
    number, flags, questions, answers, authority, _ = struct.unpack_from("!6H", message)
    at = 12
    for _ in range(questions):
        _, at = name_at(message, at)
        at += 4
    sections: list[list[tuple[str, int, bytes]]] = []
    for count in (answers, authority):
        found = []
        for _ in range(count):
            name, at = name_at(message, at)
            kind, _, _, size = struct.unpack_from("!HHIH", message, at)
            found.append((name, kind, message[at + 10 : at + 10 + size]))
            at += 10 + size
        sections.append(found)
    return Read(number, flags, sections[0], sections[1])


def name_at(message: bytes, at: int) -> tuple[str, int]:
    labels: list[str] = []
    while (size := message[at]) != 0:
        if size & 0xC0:
            rest, _ = name_at(message, struct.unpack_from("!H", message, at)[0] & 0x3FFF)
            return ".".join([*labels, rest]), at + 2
        labels.append(message[at + 1 : at + 1 + size].decode())
        at += 1 + size
    return ".".join(labels), at + 1


labels = st.from_regex(r"[a-z0-9_]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
names = st.lists(labels, min_size=1, max_size=6).map(".".join)


@given(names, st.sampled_from(list(Type)), st.integers(0, 65535))
def test_questions_are_read_as_they_were_written(name: str, kind: Type, id: int) -> None:
    question = dns.read_question(query(name.upper(), kind, id=id))
    assert (question.name, question.type, question.id) == (name, kind, id)


@given(st.binary(max_size=100))
def test_any_bytes_are_a_question_or_refused(message: bytes) -> None:
    try:
        question = dns.read_question(message)
    except BadMessage:
        return
    assert message[12:].startswith(question.raw)


@given(names, st.lists(names, max_size=5), st.lists(st.ip_addresses(v=4), max_size=5))
def test_answers_can_be_read(name: str, targets: list[str], ips: list[object]) -> None:
    question = dns.read_question(query(name))
    records = [dns.a(str(ip)) for ip in ips]
    records += [dns.named(Type.PTR, target) for target in targets]
    message = dns.response(question, Code.OK, records, [dns.soa("cluster.local")])
    found = read(message)
    assert found.id == 7
    assert [one[0] for one in found.answers] == [name] * len(records)
    assert [one[2] for one in found.answers] == [one.data for one in records]
    assert [one[0] for one in found.authority] == ["cluster.local"]
    read_back = [one.data for one in dns.read_records(message)]
    assert read_back == [one.data for one in records if one.type == Type.A]


@given(st.binary(max_size=100))
def test_any_response_is_read_or_refused(message: bytes) -> None:
    try:
        assert all(isinstance(one, Record) for one in dns.read_records(message))
    except BadMessage:
        pass


@pytest.mark.parametrize(("extended", "limit"), [(0, 512), (100, 512), (900, 900), (4096, 1232)])
def test_what_does_not_fit_a_datagram_says_so(extended: int, limit: int) -> None:
    question = dns.read_question(query("many.default.svc.cluster.local", extended=extended))
    assert question.limit == limit
    records = [dns.a(f"10.244.0.{number}") for number in range(100)]
    cut = dns.response(question, Code.OK, records, limit=question.limit)
    assert len(cut) <= limit
    assert read(cut).flags & 0x0200
    assert read(cut).answers == []
    whole = dns.response(question, Code.OK, records)
    assert not read(whole).flags & 0x0200
    assert len(read(whole).answers) == 100

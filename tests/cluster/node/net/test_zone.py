"""The cluster's names."""

from __future__ import annotations

import socket
import struct

import pytest

from kvestigate.cluster.node.net import dns_message as dns
from kvestigate.cluster.node.net import zone
from kvestigate.cluster.node.net.dns_message import Code, Type
from tests.cluster.node.net.conftest import WEB, endpoint, service, services_of, slice_of

SERVICES = services_of(
    service("web", clusterIP="10.0.0.9", ports=WEB),
    slice_of("web", endpoint("10.244.3.4")),
    service("ranks", clusterIP="None", ports=WEB),
    slice_of(
        "ranks",
        endpoint("10.244.3.5", hostname="rank-0"),
        endpoint("10.244.3.6", hostname="rank-1", ready=False),
        endpoint("10.244.3.7"),
    ),
    service("empty", clusterIP="None", ports=WEB),
    service("alias", type="ExternalName", externalName="web.default.svc.cluster.local"),
    service("outside", type="ExternalName", externalName="example.org."),
    service("loop", type="ExternalName", externalName="loop.default.svc.cluster.local"),
    service("other", namespace="team", clusterIP="10.0.0.10"),
)
IN = "default.svc.cluster.local"


def found(name: str, kind: Type = Type.A) -> tuple[Code, list[str]] | None:
    result = zone.look_up(SERVICES, name, kind)
    if result is None:
        return None
    return result.code, [shown(one) for one in result.records]


def shown(record: dns.Record) -> str:
    match record.type:
        case Type.A:
            return socket.inet_ntop(socket.AF_INET, record.data)
        case Type.SRV:
            _, weight, port = struct.unpack_from("!HHH", record.data)
            return f"{weight} {port} {shown_name(record.data[6:])}"
    return shown_name(record.data)


def shown_name(data: bytes) -> str:
    labels = []
    while data[0]:
        labels.append(data[1 : 1 + data[0]].decode())
        data = data[1 + data[0] :]
    return ".".join(labels)


@pytest.mark.parametrize(
    ("name", "kind", "records"),
    [
        (f"web.{IN}", Type.A, ["10.0.0.9"]),
        (f"web.{IN}", Type.AAAA, []),
        (f"web.{IN}", Type.ANY, ["10.0.0.9"]),
        (f"ranks.{IN}", Type.A, ["10.244.3.5", "10.244.3.7"]),
        (f"rank-0.ranks.{IN}", Type.A, ["10.244.3.5"]),
        (f"10-244-3-7.ranks.{IN}", Type.A, ["10.244.3.7"]),
        ("other.team.svc.cluster.local", Type.A, ["10.0.0.10"]),
        (f"_web._tcp.web.{IN}", Type.SRV, [f"100 80 web.{IN}"]),
        (f"_web._tcp.ranks.{IN}", Type.SRV,
         [f"50 8080 rank-0.ranks.{IN}", f"50 8080 10-244-3-7.ranks.{IN}"]),
        ("10-244-3-4.default.pod.cluster.local", Type.A, ["10.244.3.4"]),
        ("9.0.0.10.in-addr.arpa", Type.PTR, [f"web.{IN}"]),
        ("5.3.244.10.in-addr.arpa", Type.PTR, [f"rank-0.ranks.{IN}"]),
        (f"alias.{IN}", Type.A, [f"web.{IN}", "10.0.0.9"]),
        (f"alias.{IN}", Type.CNAME, [f"web.{IN}"]),
        (f"outside.{IN}", Type.A, ["example.org"]),
        (f"loop.{IN}", Type.A, [f"loop.{IN}"]),
        (IN, Type.A, []),
        ("svc.cluster.local", Type.A, []),
        ("cluster.local", Type.A, []),
    ],
)  # fmt: skip
def test_a_name_stands_for(name: str, kind: Type, records: list[str]) -> None:
    assert found(name, kind) == (Code.OK, records)


@pytest.mark.parametrize(
    "name",
    [
        f"nobody.{IN}", f"empty.{IN}", f"rank-1.ranks.{IN}", f"rank-0.web.{IN}",
        f"_http._tcp.web.{IN}", f"_web._udp.web.{IN}", f"a.b.c.web.{IN}", f"x.alias.{IN}",
        "web.team.svc.cluster.local", "nowhere.svc.cluster.local", "example.org.cluster.local",
        "1-2-3.default.pod.cluster.local",
    ],
)  # fmt: skip
def test_what_is_not_there_is_said_not_to_be(name: str) -> None:
    assert found(name) == (Code.NO_SUCH_NAME, [])


@pytest.mark.parametrize(
    "name", ["example.org", "cluster.local.example.org", "notcluster.local", "", "com",
             "4.3.2.1.in-addr.arpa"],
)  # fmt: skip
def test_other_names_are_for_others(name: str) -> None:
    assert found(name) is None


def test_a_name_outside_is_to_be_asked_for_elsewhere() -> None:
    result = zone.look_up(SERVICES, f"outside.{IN}", Type.A)
    assert result is not None
    assert result.alias == "example.org"

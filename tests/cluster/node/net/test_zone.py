"""The cluster's names."""

from __future__ import annotations

import pytest
from dns.rcode import Rcode
from dns.rdata import Rdata
from dns.rdatatype import RdataType

from kvestigate.cluster.node.net import zone
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


def found(name: str, kind: RdataType = RdataType.A) -> tuple[Rcode, list[str]] | None:
    result = zone.look_up(SERVICES, name, kind)
    if result is None:
        return None
    return result.code, [shown(record) for record in (*result.records, *(result.behind or ()))]


def shown(record: Rdata) -> str:
    """`100 80 web.default.svc.cluster.local`: of an SRV record all but its priority."""
    return record.to_text().removesuffix(".").removeprefix("0 ")


@pytest.mark.parametrize(
    ("name", "kind", "records"),
    [
        (f"web.{IN}", RdataType.A, ["10.0.0.9"]),
        (f"web.{IN}", RdataType.AAAA, []),
        (f"web.{IN}", RdataType.ANY, ["10.0.0.9"]),
        (f"ranks.{IN}", RdataType.A, ["10.244.3.5", "10.244.3.7"]),
        (f"rank-0.ranks.{IN}", RdataType.A, ["10.244.3.5"]),
        (f"10-244-3-7.ranks.{IN}", RdataType.A, ["10.244.3.7"]),
        ("other.team.svc.cluster.local", RdataType.A, ["10.0.0.10"]),
        (f"_web._tcp.web.{IN}", RdataType.SRV, [f"100 80 web.{IN}"]),
        (f"_web._tcp.ranks.{IN}", RdataType.SRV,
         [f"50 8080 rank-0.ranks.{IN}", f"50 8080 10-244-3-7.ranks.{IN}"]),
        ("10-244-3-4.default.pod.cluster.local", RdataType.A, ["10.244.3.4"]),
        ("9.0.0.10.in-addr.arpa", RdataType.PTR, [f"web.{IN}"]),
        ("5.3.244.10.in-addr.arpa", RdataType.PTR, [f"rank-0.ranks.{IN}"]),
        (f"alias.{IN}", RdataType.A, [f"web.{IN}", "10.0.0.9"]),
        (f"alias.{IN}", RdataType.CNAME, [f"web.{IN}"]),
        (f"outside.{IN}", RdataType.A, ["example.org"]),
        (f"loop.{IN}", RdataType.A, [f"loop.{IN}"]),
        (IN, RdataType.A, []),
        ("svc.cluster.local", RdataType.A, []),
        ("cluster.local", RdataType.A, []),
    ],
)  # fmt: skip
def test_a_name_stands_for(name: str, kind: RdataType, records: list[str]) -> None:
    assert found(name, kind) == (Rcode.NOERROR, records)


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
    assert found(name) == (Rcode.NXDOMAIN, [])


@pytest.mark.parametrize(
    "name", ["example.org", "cluster.local.example.org", "notcluster.local", "", "com",
             "4.3.2.1.in-addr.arpa"],
)  # fmt: skip
def test_other_names_are_for_others(name: str) -> None:
    assert found(name) is None


def test_a_name_outside_is_to_be_asked_for_elsewhere() -> None:
    result = zone.look_up(SERVICES, f"outside.{IN}", RdataType.A)
    assert result is not None
    assert (result.alias, result.behind) == ("example.org", None)

"""What pods read about names, by their spec."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kvestigate.cluster.node.hosts import resolv_conf
from kvestigate.cluster.node.hosts.resolv_conf import Resolver
from kvestigate.cluster.node.net.files import hosts, resolver
from kvestigate.cluster.node.net.translation import DNS_ADDRESS
from kvestigate.cluster.node.spec.pod import Pod

MACHINE = Resolver(("192.0.2.53",), ("corp.example",), ("edns0",))
LOCAL = ("team.svc.cluster.local", "svc.cluster.local", "cluster.local")
CLUSTER = Resolver((DNS_ADDRESS,), (*LOCAL, "corp.example"), ("ndots:5",))
OWN = {
    "nameservers": ["192.0.2.1"],
    "searches": ["own.example", "cluster.local"],
    "options": [{"name": "ndots", "value": "1"}, {"name": "use-vc"}],
}


def pod(**spec: Any) -> Pod:
    return msgspec.convert({"metadata": {"name": "p", "namespace": "team"}, "spec": spec}, Pod)


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, CLUSTER),
        ({"dnsPolicy": "ClusterFirst", "hostNetwork": True}, MACHINE),
        ({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": True}, CLUSTER),
        ({"dnsPolicy": "Default"}, MACHINE),
        ({"dnsPolicy": "None", "dnsConfig": OWN},
         Resolver(("192.0.2.1",), ("own.example", "cluster.local"), ("ndots:1", "use-vc"))),
        ({"dnsConfig": OWN},
         Resolver((DNS_ADDRESS, "192.0.2.1"), (*CLUSTER.searches, "own.example"),
                  ("ndots:1", "use-vc"))),
    ],
)  # fmt: skip
def test_names_are_asked_for_by_policy(spec: dict[str, Any], wanted: Resolver) -> None:
    assert resolver(pod(**spec), MACHINE) == wanted
    assert resolv_conf.read(wanted.text()) == wanted


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ({}, "10.244.1.2\tp"),
        ({"hostname": "h"}, "10.244.1.2\th"),
        ({"hostname": "h", "subdomain": "s"}, "10.244.1.2\th.s.team.svc.cluster.local h"),
        ({"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a", "b"]}]}, "1.2.3.4\ta b"),
        ({"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a"]}], "hostNetwork": True},
         "1.2.3.4\ta"),
    ],
)  # fmt: skip
def test_a_pod_knows_its_own_name(spec: dict[str, Any], line: str) -> None:
    lines = hosts(pod(**spec), "10.244.1.2", "127.0.0.1 machine\n").splitlines()
    assert line in lines
    assert ("127.0.0.1 machine" in lines) == spec.get("hostNetwork", False)
    assert ("127.0.0.1\tlocalhost" in lines) != spec.get("hostNetwork", False)

"""Reading `resolv.conf`, and saying the same in variables."""

from __future__ import annotations

from kvestigate.cluster.node.hosts import resolv_conf
from kvestigate.cluster.node.hosts.resolv_conf import Resolver


def test_a_file_is_read_as_the_c_library_does() -> None:
    text = """
# comment
nameserver 192.0.2.1 ; and more
domain old.example
search one.example two.example
options ndots:2
options rotate
sortlist 10.0.0.0
"""
    assert resolv_conf.read(text) == Resolver(
        ("192.0.2.1",), ("one.example", "two.example"), ("ndots:2", "rotate")
    )


def test_the_c_library_is_told_by_variables_where_there_is_no_file() -> None:
    assert Resolver(
        ("169.254.20.10",), ("svc.cluster.local", "corp.example"), ("ndots:5",)
    ).variables() == {
        "LOCALDOMAIN": "svc.cluster.local corp.example",
        "RES_OPTIONS": "ndots:5",
    }
    assert Resolver().variables() == {}

"""What one rule lets whom do."""

from __future__ import annotations

import pytest

from kvestigate.cluster.plane.access.authz.rules import Rule, Subject, atoms, covered
from kvestigate.cluster.plane.model.request_info import parse

READ = Rule(("get", "list"), ("",), ("pods", "pods/log"))


@pytest.mark.parametrize(
    ("rule", "method", "path", "allowed"),
    [
        (READ, "GET", "/api/v1/namespaces/a/pods", True),
        (READ, "GET", "/api/v1/namespaces/a/pods/p", True),
        (READ, "GET", "/api/v1/namespaces/a/pods/p/log", True),
        (READ, "GET", "/api/v1/namespaces/a/pods/p/exec", False),
        (READ, "DELETE", "/api/v1/namespaces/a/pods/p", False),
        (READ, "GET", "/apis/apps/v1/namespaces/a/pods", False),
        (Rule(("*",), ("*",), ("*",)), "POST", "/apis/a.b/v1/things", True),
        (Rule(("*",), ("*",), ("*",)), "GET", "/healthz", False),
        (
            Rule(("get",), ("apps",), ("*/scale",)),
            "GET",
            "/apis/apps/v1/namespaces/a/deployments/d/scale",
            True,
        ),
        (
            Rule(("get",), ("apps",), ("*/scale",)),
            "GET",
            "/apis/apps/v1/namespaces/a/deployments/d",
            False,
        ),
        (Rule(("*",), ("",), ("pods",), ("p",)), "GET", "/api/v1/namespaces/a/pods/p", True),
        (Rule(("*",), ("",), ("pods",), ("p",)), "GET", "/api/v1/namespaces/a/pods/q", False),
        (Rule(("*",), ("",), ("pods",), ("p",)), "GET", "/api/v1/namespaces/a/pods", False),
        (Rule(("get",), non_resource_urls=("/healthz",)), "GET", "/healthz", True),
        (Rule(("get",), non_resource_urls=("/healthz",)), "GET", "/healthz/etcd", False),
        (Rule(("get",), non_resource_urls=("/healthz/*",)), "GET", "/healthz/etcd", True),
        (Rule(("get",), non_resource_urls=("*",)), "GET", "/anything", True),
    ],
)
def test_a_rule_is_about_verbs_and_things(
    rule: Rule, method: str, path: str, allowed: bool
) -> None:
    assert rule.allows(parse(method, path, "")) is allowed


@pytest.mark.parametrize(
    ("subject", "identity"),
    [
        (Subject("User", "jane"), ("user", "jane")),
        (Subject("Group", "dev"), ("group", "dev")),
        (Subject("ServiceAccount", "sa", "ns"), ("user", "system:serviceaccount:ns:sa")),
    ],
)
def test_a_subject_is_known_as_requests_carry_it(
    subject: Subject, identity: tuple[str, str]
) -> None:
    assert subject.identity == identity


@pytest.mark.parametrize(
    ("wanted", "owned", "all_held"),
    [
        (READ, [READ], True),
        (READ, [Rule(("*",), ("",), ("*",))], True),
        (READ, [Rule(("get",), ("",), ("*",)), Rule(("list",), ("",), ("*",))], True),
        (READ, [Rule(("get",), ("",), ("*",))], False),
        (READ, [Rule(("*",), ("",), ("pods",))], False),
        (READ, [Rule(("*",), ("",), ("*",), ("p",))], False),
        (Rule(("get",), ("",), ("pods",), ("p",)), [READ], True),
        (Rule(("*",), ("",), ("pods",)), [READ], False),
        (Rule(("get",), ("*",), ("pods",)), [READ], False),
        (Rule(("get",), non_resource_urls=("/a/b",)), [READ], False),
        (
            Rule(("get",), non_resource_urls=("/a/b",)),
            [Rule(("get",), non_resource_urls=("/a/*",))],
            True,
        ),
        (
            Rule(("get",), non_resource_urls=("*",)),
            [Rule(("get",), non_resource_urls=("/a/*",))],
            False,
        ),
    ],
)
def test_rules_cover_others_together(wanted: Rule, owned: list[Rule], all_held: bool) -> None:
    assert all(covered(atom, owned) for atom in atoms([wanted])) is all_held

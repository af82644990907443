"""What a server is told about its users."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.errors import Forbidden, UsageError
from kvestigate.jobs.accounts.quotas import Quota, Usage, check, demand, read_quotas
from kvestigate.jobs.server.settings import Oidc, read_settings
from kvestigate.jobs.tasks.parse import parse_task
from kvestigate.jobs.users import Caller, Role, User

DIGEST = "ab" * 32
CPU = 10**9


def test_everything_that_can_be_said() -> None:
    settings = read_settings(
        {
            "tokens": [
                {"user": "jane", "sha256": DIGEST},
                {"user": "r", "role": "admin", "sha256": "0" * 64},
            ],
            "oidc": {
                "issuer": "https://i.example.com",
                "audience": "k",
                "username_claim": "sub",
                "admin_groups": ["ml"],
            },
            "admins": ["joe"],
            "hosts": ["Jobs.example.com.", "2001:DB8::0"],
            "quotas": {"default": {"jobs": 3, "cpus": "1500m"}, "users": {"jane": {"gpus": 8}}},
        }
    )
    assert settings.proves_users
    assert settings.tokens[DIGEST] == Caller(User("jane"), Role.USER)
    assert settings.tokens["0" * 64].role is Role.ADMIN
    groups = frozenset(["ml"])
    assert settings.oidc == Oidc("https://i.example.com", "k", "", "sub", "groups", groups)
    assert settings.admins == frozenset(["joe"])
    assert settings.hosts == frozenset(["jobs.example.com", "2001:db8::"])
    assert settings.quotas is not None
    assert settings.quotas.of(User("jane")) == Quota(3, 1_500_000_000, 8)
    assert settings.quotas.of(User("joe")) == Quota(3, 1_500_000_000, None)


def test_without_tokens_or_an_issuer_nobody_proves_anything() -> None:
    assert not read_settings({"admins": ["joe"]}).proves_users
    assert read_settings(None).quotas is None


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "[] is not a mapping"),
        ({"token": []}, "token: no such field"),
        ({"tokens": {}}, "tokens: {} is not a list"),
        ({"tokens": [{"user": "a"}]}, "tokens[0].sha256: the field is required"),
        ({"tokens": [{"user": "a", "sha256": "abc"}]}, "tokens[0].sha256: is not the SHA-256"),
        ({"tokens": [{"sha256": DIGEST}]}, "tokens[0].user: the field is required"),
        ({"tokens": [{"user": " a", "sha256": DIGEST}]}, "' a' is not a user name"),
        ({"tokens": [{"user": "a", "sha256": DIGEST, "role": "king"}]}, "tokens[0].role: 'king'"),
        (
            {"tokens": [{"user": "a", "sha256": DIGEST}] * 2},
            "tokens[1].sha256: the same token is listed twice",
        ),
        ({"oidc": {"issuer": "https://a"}}, "oidc.audience: the field is required"),
        (
            {"oidc": {"issuer": "http://a", "audience": "b"}},
            "oidc.issuer: 'http://a' is not an https",
        ),
        ({"oidc": {"issuer": 3}}, "oidc.issuer: 3 is not text"),
        ({"admins": "joe"}, "admins: 'joe' is not a list"),
        ({"quotas": {"default": {"jobs": -1}}}, "quotas.default.jobs: -1"),
        ({"quotas": {"default": {"jobs": True}}}, "quotas.default.jobs: True"),
        ({"quotas": {"default": {"cpus": "many"}}}, "quotas.default.cpus: "),
        ({"quotas": {"users": {"a": {"gpu": 1}}}}, "quotas.users.a.gpu: no such field"),
        ({"quotas": {"users": {" a": {}}}}, "' a' is not a user name"),
        ({"hosts": ["https://a.example.com"]}, "hosts[0]: 'https://a.example.com' is not a host"),
        ({"hosts": ["a.example.com:80"]}, "hosts[0]: 'a.example.com:80' is not a host"),
        ({"hosts": ["*"]}, "hosts[0]: '*' is not a host"),
        ({"hosts": [""]}, "hosts[0]: '' is not text"),
        ({"admins": [""]}, "admins[0]: '' is not text"),
        ({"oidc": {"issuer": "https://a", "audience": ""}}, "oidc.audience: '' is not text"),
    ],
)
def test_a_mistake_is_named_with_its_path(document: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_settings(document)
    assert message in str(caught.value)


def test_an_entry_without_a_value_has_the_defaults() -> None:
    quotas = read_quotas({"default": {"jobs": 2}, "users": {"jane": None}}, "quotas")
    assert quotas.of(User("jane")) == Quota(jobs=2)


def test_what_a_task_demands() -> None:
    task = parse_task(
        {"run": "x", "num_nodes": 3, "resources": {"cpus": "500m", "accelerators": "A100:2"}}
    )
    assert demand(task, task.choices[0]) == Usage(1, 3 * CPU // 2, 6)


@pytest.mark.parametrize(
    ("quota", "used", "wanted", "message"),
    [
        (Quota(jobs=2), Usage(2), Usage(1), "use 2 jobs, this task requests 1, and the limit is 2"),
        (Quota(cpus=CPU), Usage(0, CPU // 2), Usage(1, CPU), "use 0.5 CPUs, this task requests 1"),
        (
            Quota(gpus=1),
            Usage(),
            Usage(1, 0, 2),
            "use 0 GPUs, this task requests 2, and the limit is 1",
        ),
        (Quota(gpus=0), Usage(), Usage(1, 0, 1), "and the limit is 0"),
    ],
)
def test_too_much_is_refused(quota: Quota, used: Usage, wanted: Usage, message: str) -> None:
    with pytest.raises(Forbidden, match="quota exceeded") as caught:
        check(quota, used, wanted)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("quota", "used", "wanted"),
    [
        (Quota(), Usage(1000, 10**15, 1000), Usage(1, CPU, 1)),
        (Quota(jobs=2, gpus=2), Usage(1, 0, 1), Usage(1, 0, 1)),
        # Who has too many GPUs already may still run what needs none.
        (Quota(gpus=1), Usage(1, 0, 4), Usage(1, CPU, 0)),
    ],
)
def test_what_is_allowed_passes(quota: Quota, used: Usage, wanted: Usage) -> None:
    check(quota, used, wanted)


def test_no_limit_at_all_is_no_quota() -> None:
    assert read_quotas({"users": {"jane": {"jobs": 1}}}, "quotas").of(User("joe")) is None

"""Which cluster, as whom, and what the server says about it."""

from __future__ import annotations

import dataclasses
import datetime

import pytest
from msgspec.structs import replace

from kvestigate.client.access import Access, Impersonation, Tls
from kvestigate.client.auth.static import Anonymous
from kvestigate.client.endpoint import parse_endpoint
from kvestigate.client.whoami import Identity
from kvestigate.debug.context import ContextOptions, collect, local_facts
from kvestigate.debug.rendering import context_blocks
from kvestigate.errors import EXIT_DENIED, EXIT_NO_CLUSTER
from kvestigate.http.certificates import CertificateAuthority
from kvestigate.http.message import Request, Response
from kvestigate.render.plain import to_text
from tests.debug.conftest import Reach, as_json

AUTHORITY = CertificateAuthority.create(
    "kubernetes", now=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
)
UNSEEN = "not verified yet (no answer); it will be for"
ACCESS = Access(parse_endpoint("https://api.example.com:6443"), Anonymous())


def lines(access: Access) -> dict[str, str]:
    shown = to_text(context_blocks(local_facts(access)))
    return {
        name: value.strip()
        for name, _, value in (line.partition(":") for line in shown.splitlines())
    }


@pytest.mark.parametrize(
    ("access", "name", "shown"),
    [
        (ACCESS, "tls", f"{UNSEEN} api.example.com against the system's authorities"),
        (
            replace(ACCESS, tls=Tls(ca=AUTHORITY.pair.certificate, server_name="kubernetes")),
            "tls",
            f"{UNSEEN} kubernetes against the authorities of the kubeconfig",
        ),
        (
            replace(ACCESS, tls=Tls(ca=AUTHORITY.pair.certificate)),
            "authority",
            "CN=kubernetes, expires 2035-12-30 00:00 UTC",
        ),
        (
            replace(ACCESS, tls=Tls(insecure=True)),
            "tls",
            "NOT VERIFIED: insecure-skip-tls-verify is set",
        ),
        (
            replace(ACCESS, server=parse_endpoint("http://127.0.0.1:8080")),
            "tls",
            "none (plain http; credentials are not sent)",
        ),
        (ACCESS, "proxy", "(none)"),
        (
            replace(ACCESS, proxy_url="http://me:secret@proxy:3128"),
            "proxy",
            "http://me:...@proxy:3128",
        ),
        (
            replace(ACCESS, impersonate=Impersonation("jane", "7", ("dev", "ops"))),
            "impersonating",
            "jane, group dev, group ops, uid 7",
        ),
        (ACCESS, "context", "(none)"),
        (ACCESS, "namespace", "default"),
    ],
)
def test_what_is_known_without_the_server(access: Access, name: str, shown: str) -> None:
    assert lines(access)[name] == shown


def test_a_bundle_that_does_not_parse_does_not_stop_the_report() -> None:
    facts = local_facts(replace(ACCESS, tls=Tls(ca=b"-----BEGIN CERTIFICATE-----\nx"))).tls
    assert facts is not None
    assert facts.authorities == ()


async def test_the_server_says_who_we_are(reach: Reach) -> None:
    async def handle(request: Request) -> Response:
        if request.path == "/version":
            return as_json({"gitVersion": "v1.36.4", "platform": "linux/amd64"})
        assert request.method == "POST"
        assert request.path == "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        user = {"username": "jane", "groups": ["dev"], "extra": {"k": ["v"]}}
        return as_json({"status": {"userInfo": user}}, 201)

    report = await collect(await reach(handle), ContextOptions())
    assert report.identity == Identity("jane", groups=("dev",), extra={"k": ("v",)})
    assert (report.server_version, report.problem) == ("v1.36.4", "")
    shown = to_text(context_blocks(report))
    assert "server version:   v1.36.4 (linux/amd64)\n" in shown
    assert "server sees:      jane in dev\n" in shown


async def test_what_the_server_did_say_is_kept_when_it_then_refuses(reach: Reach) -> None:
    async def handle(request: Request) -> Response:
        if request.path == "/version":
            return as_json({"gitVersion": "v1.27.0"})
        return as_json({"kind": "Status", "reason": "Forbidden", "message": "no"}, 403)

    report = await collect(await reach(handle), ContextOptions())
    assert report.exit_code == EXIT_DENIED
    assert (report.server_version, report.identity, report.problem) == ("v1.27.0", None, "no")


async def test_nobody_there_is_part_of_the_report() -> None:
    nobody = replace(ACCESS, server=parse_endpoint("http://127.0.0.1:1"))
    report = await collect(nobody, ContextOptions())
    assert report.exit_code == EXIT_NO_CLUSTER
    assert report.problem == "127.0.0.1:1 refused the connection"
    assert "problem:          127.0.0.1:1 refused the connection" in to_text(context_blocks(report))


def test_an_answer_is_what_shows_that_tls_was_verified() -> None:
    local = local_facts(ACCESS)
    assert local.tls is not None
    assert local.tls.verified is None
    answered = dataclasses.replace(local, tls=dataclasses.replace(local.tls, verified=True))
    assert "verified for api.example.com against" in to_text(context_blocks(answered))

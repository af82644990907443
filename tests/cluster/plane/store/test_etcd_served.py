"""A whole server on an etcd: over TLS, and while the etcd is away."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.interface import AllowAll
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.front.serving import EtcdOptions, Listen, ServeOptions, serving
from kvestigate.cluster.plane.store.errors import StoreFailed
from kvestigate.cluster.plane.store.etcd.backend import EtcdBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.http.certificates import CertificateAuthority
from kvestigate.http.tls import client_context
from tests.cluster.plane.conftest import ADMIN, TOKEN, Api
from tests.cluster.plane.store.conftest import Etcd, running_etcd
from tests.static_tokens import StaticTokens

CONFIGS = "/api/v1/namespaces/default/configmaps"
NOW = datetime.datetime.now(datetime.UTC)


def config(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}}


async def test_while_the_etcd_is_away_reads_are_answered_and_writes_told_to_wait(
    own_etcd: Etcd, prefix: str
) -> None:
    # The first member never answers: the other one does.
    members = ["http://127.0.0.1:1", own_etcd.url]
    async with Store(EtcdBackend(members, prefix=prefix, patience=0.5)) as store:
        api = Api(ApiServer(store, StaticTokens({digest(TOKEN): ADMIN}), AllowAll()))
        assert (await api.post(CONFIGS, config("kept"))).status == 201
        own_etcd.stop()
        read = await api.get(f"{CONFIGS}/kept")
        written = await api.post(CONFIGS, config("lost"))
        elsewhere = await Api(api.server, "/clusters/new/control-plane").get(CONFIGS)
    assert read.status == 200
    assert (written.status, written.body["reason"]) == (503, "ServiceUnavailable")
    assert written.headers.get("retry-after") == "1"
    assert "etcd does not answer" in written.body["message"]
    assert elsewhere.status == 503


async def test_an_etcd_behind_tls(tmp_path: Path) -> None:
    authority = CertificateAuthority.create("etcd CA", now=NOW)
    files = {
        "ca.crt": authority.pair.certificate,
        "server.crt": (
            served := authority.issue_server("etcd", ["127.0.0.1"], now=NOW)
        ).certificate,
        "server.key": served.key,
        "client.crt": (shown := authority.issue_client("kvestigate", now=NOW)).certificate,
        "client.key": shown.key,
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    flags = (
        *("--cert-file", str(tmp_path / "server.crt"), "--key-file", str(tmp_path / "server.key")),
        *("--client-cert-auth", "--trusted-ca-file", str(tmp_path / "ca.crt")),
        # The gateway is a client of the etcd that it is part of.
        *("--client-cert-file", str(tmp_path / "client.crt")),
        *("--client-key-file", str(tmp_path / "client.key")),
    )
    with running_etcd(tmp_path, flags) as etcd:
        known = EtcdOptions(
            (etcd.url,),
            ca=tmp_path / "ca.crt",
            certificate=tmp_path / "client.crt",
            key=tmp_path / "client.key",
        )
        async with serving(ServeOptions(tmp_path / "plane", Listen(port=0), etcd=known)) as started:
            assert started.url
        stranger = EtcdBackend([etcd.url], client_context(ca=files["ca.crt"]), patience=0.2)
        with pytest.raises(StoreFailed, match="etcd does not answer"):
            async with Store(stranger):
                raise AssertionError("an etcd that takes anybody")

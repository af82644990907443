"""Every way in that a kubeconfig can describe, judged by whom the real server takes us for."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kvestigate.client.auth.interface import wall_now
from kvestigate.errors import Forbidden, Unauthorized
from kvestigate.kube import builtins
from tests.real.plugin import write_plugin
from tests.real.session import Watch, connected, whoami
from tests.upstream.cluster import ADMIN_TOKEN, READER_TOKEN, UpstreamCluster

REVOKED = "token-of-nobody"
Entry = dict[str, Any]


def _certificate_files(cluster: UpstreamCluster, home: Path) -> Entry:
    pair = cluster.client_certificate("file-user", ("makers",))
    (home / "me.crt").write_bytes(pair.certificate)
    (home / "me.key").write_bytes(pair.key)
    return {"client-certificate": str(home / "me.crt"), "client-key": str(home / "me.key")}


def _certificate_data(cluster: UpstreamCluster, home: Path) -> Entry:
    pair = cluster.client_certificate("data-user", ("makers", "shakers"))
    return {
        "client-certificate-data": base64.b64encode(pair.certificate).decode(),
        "client-key-data": base64.b64encode(pair.key).decode(),
    }


def _token(cluster: UpstreamCluster, home: Path) -> Entry:
    return {"token": READER_TOKEN}


def _token_file(cluster: UpstreamCluster, home: Path) -> Entry:
    (home / "token").write_text(f"{READER_TOKEN}\n")
    return {"tokenFile": str(home / "token")}


def _exec_token(cluster: UpstreamCluster, home: Path) -> Entry:
    return write_plugin(home, {"token": READER_TOKEN}).user()


def _exec_certificate(cluster: UpstreamCluster, home: Path) -> Entry:
    pair = cluster.client_certificate("plugin-user", ("makers",))
    answer = {
        "clientCertificateData": pair.certificate.decode(),
        "clientKeyData": pair.key.decode(),
    }
    return write_plugin(home, answer).user()


def _token_beside_certificate(cluster: UpstreamCluster, home: Path) -> Entry:
    return _certificate_data(cluster, home) | {"token": READER_TOKEN}


@pytest.mark.parametrize(
    ("credentials", "user", "groups"),
    [
        (_certificate_files, "file-user", ("makers",)),
        (_certificate_data, "data-user", ("makers", "shakers")),
        (_token, "token-reader", ("readers", "watchers")),
        (_token_file, "token-reader", ("readers", "watchers")),
        (_exec_token, "token-reader", ("readers", "watchers")),
        (_exec_certificate, "plugin-user", ("makers",)),
        (_token_beside_certificate, "data-user", ("makers", "shakers")),
    ],
)
async def test_the_server_knows_us(
    kubernetes: UpstreamCluster,
    tmp_path: Path,
    credentials: Callable[[UpstreamCluster, Path], Entry],
    user: str,
    groups: tuple[str, ...],
) -> None:
    kubeconfig = kubernetes.kubeconfig("someone", credentials=credentials(kubernetes, tmp_path))
    async with connected(kubeconfig) as api:
        identity = await whoami(api)
    assert (identity.name, identity.groups) == (user, groups)


async def test_without_credentials_we_are_anonymous(kubernetes: UpstreamCluster) -> None:
    kubeconfig = kubernetes.kubeconfig("someone", credentials={})
    async with connected(kubeconfig) as api:
        with pytest.raises(Forbidden, match="system:anonymous"):
            await api.list(builtins.resource("pods"))


async def test_an_unknown_token_is_unauthorized(kubernetes: UpstreamCluster) -> None:
    kubeconfig = kubernetes.kubeconfig("someone", credentials={"token": REVOKED})
    async with connected(kubeconfig) as api:
        with pytest.raises(Unauthorized):
            await whoami(api)


async def test_a_token_file_is_read_again_in_time(
    kubernetes: UpstreamCluster, tmp_path: Path
) -> None:
    file, watch = tmp_path / "token", Watch()
    file.write_text(READER_TOKEN)
    kubeconfig = kubernetes.kubeconfig("someone", credentials={"tokenFile": str(file)})
    async with connected(kubeconfig, now=watch) as api:
        assert (await whoami(api)).name == "token-reader"
        file.write_text(ADMIN_TOKEN)
        watch.forward(seconds=60)
        assert (await whoami(api)).name == "token-admin"


async def test_a_token_file_is_read_again_when_the_token_is_refused(
    kubernetes: UpstreamCluster, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(REVOKED)
    kubeconfig = kubernetes.kubeconfig("someone", credentials={"tokenFile": str(file)})
    async with connected(kubeconfig) as api:
        with pytest.raises(Unauthorized):
            await whoami(api)
        file.write_text(READER_TOKEN)
        assert (await whoami(api)).name == "token-reader"


async def test_rotated_certificate_files_are_used(
    kubernetes: UpstreamCluster, tmp_path: Path
) -> None:
    entry = _certificate_files(kubernetes, tmp_path)
    kubeconfig = kubernetes.kubeconfig("someone", credentials=entry)
    async with connected(kubeconfig) as api:
        assert (await whoami(api)).name == "file-user"
        pair = kubernetes.client_certificate("rotated-user")
        (tmp_path / "me.crt").write_bytes(pair.certificate)
        (tmp_path / "me.key").write_bytes(pair.key)
        assert (await whoami(api)).name == "rotated-user"


async def test_a_plugin_runs_once_until_its_credential_expires(
    kubernetes: UpstreamCluster, tmp_path: Path
) -> None:
    watch = Watch()
    expiry = (wall_now() + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    plugin = write_plugin(
        tmp_path,
        {"token": READER_TOKEN, "expirationTimestamp": expiry},
        {"token": ADMIN_TOKEN},
    )
    kubeconfig = kubernetes.kubeconfig("someone", credentials=plugin.user())
    async with connected(kubeconfig, now=watch) as api:
        assert (await whoami(api)).name == "token-reader"
        assert (await whoami(api)).name == "token-reader"
        assert len(plugin.runs) == 1
        watch.forward(seconds=301)
        assert (await whoami(api)).name == "token-admin"
    assert len(plugin.runs) == 2


async def test_a_plugin_runs_again_when_its_token_is_refused(
    kubernetes: UpstreamCluster, tmp_path: Path
) -> None:
    plugin = write_plugin(tmp_path, {"token": REVOKED}, {"token": READER_TOKEN})
    kubeconfig = kubernetes.kubeconfig("someone", credentials=plugin.user())
    async with connected(kubeconfig) as api:
        assert (await whoami(api)).name == "token-reader"
    assert len(plugin.runs) == 2


async def test_a_plugin_learns_of_the_cluster_if_it_asks(
    kubernetes: UpstreamCluster, tmp_path: Path
) -> None:
    plugin = write_plugin(tmp_path, {"token": READER_TOKEN})
    entry = plugin.user(provideClusterInfo=True)
    async with connected(kubernetes.kubeconfig("someone", credentials=entry)) as api:
        await whoami(api)
    (told,) = plugin.runs
    assert told["spec"]["cluster"]["server"] == kubernetes.url
    assert told["spec"]["interactive"] is False


async def test_impersonation_is_complete(kubernetes: UpstreamCluster) -> None:
    acting = {
        "as": "deputy",
        "as-uid": "deputy-uid",
        "as-groups": ["deputies", "others"],
        "as-user-extra": {"example.com/reason": ["audit", "drill"], "scopes": ["view"]},
    }
    kubeconfig = kubernetes.kubeconfig("someone", credentials={"token": ADMIN_TOKEN} | acting)
    async with connected(kubeconfig) as api:
        identity = await whoami(api)
    assert identity.name == "deputy"
    assert identity.uid == "deputy-uid"
    assert identity.groups == ("deputies", "others")
    assert identity.extra == {"example.com/reason": ["audit", "drill"], "scopes": ["view"]}


async def test_who_may_not_impersonate_is_told_so(kubernetes: UpstreamCluster) -> None:
    entry = {"token": READER_TOKEN, "as": "deputy"}
    async with connected(kubernetes.kubeconfig("someone", credentials=entry)) as api:
        with pytest.raises(Forbidden, match="cannot impersonate"):
            await whoami(api)


async def test_a_service_account_token_works(kubernetes: UpstreamCluster, namespace: str) -> None:
    async with connected(kubernetes.admin_kubeconfig()) as api:
        made = await api.create(
            builtins.resource("serviceaccounts"),
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
            name="default",
            subresource="token",
            namespace=namespace,
        )
    token = made["status"]["token"]
    async with connected(kubernetes.kubeconfig("someone", credentials={"token": token})) as api:
        identity = await whoami(api)
    assert identity.name == f"system:serviceaccount:{namespace}:default"

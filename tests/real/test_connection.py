"""How the server is reached and how it proves itself, as a kubeconfig describes it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from kvestigate.client.auth.interface import wall_now
from kvestigate.errors import ConnectionFailed
from kvestigate.http.certificates import CertificateAuthority
from tests.real.session import connected, whoami
from tests.real.tunnel import tunnel
from tests.upstream.cluster import READER_TOKEN, SERVER_NAME, UpstreamCluster

TOKEN = {"token": READER_TOKEN}
Entry = dict[str, Any]


def _authority_file(cluster: UpstreamCluster) -> Entry:
    return {"certificate-authority": str(cluster.ca_file)}


def _authority_data(cluster: UpstreamCluster) -> Entry:
    data = base64.b64encode(cluster.ca_file.read_bytes()).decode()
    return {"certificate-authority-data": data}


def _insecure(cluster: UpstreamCluster) -> Entry:
    return {"insecure-skip-tls-verify": True}


def _server_name(cluster: UpstreamCluster) -> Entry:
    return _authority_file(cluster) | {"tls-server-name": SERVER_NAME}


def _by_name(cluster: UpstreamCluster) -> Entry:
    return _authority_file(cluster) | {"server": f"https://localhost:{cluster.port}/"}


def _no_authority(cluster: UpstreamCluster) -> Entry:
    return {}


def _foreign_authority(cluster: UpstreamCluster) -> Entry:
    foreign = CertificateAuthority.create("somebody else", now=wall_now())
    data = base64.b64encode(foreign.pair.certificate).decode()
    return {"certificate-authority-data": data}


def _wrong_name(cluster: UpstreamCluster) -> Entry:
    return _authority_file(cluster) | {"tls-server-name": "elsewhere.example"}


@pytest.mark.parametrize(
    "connection", [_authority_file, _authority_data, _insecure, _server_name, _by_name]
)
async def test_the_server_is_reached(
    kubernetes: UpstreamCluster, connection: Callable[[UpstreamCluster], Entry]
) -> None:
    entry = connection(kubernetes)
    kubeconfig = kubernetes.kubeconfig("someone", credentials=TOKEN, connection=entry)
    async with connected(kubeconfig) as api:
        assert (await whoami(api)).name == "token-reader"


@pytest.mark.parametrize("connection", [_no_authority, _foreign_authority, _wrong_name])
async def test_a_server_that_does_not_prove_itself_is_not_spoken_to(
    kubernetes: UpstreamCluster, connection: Callable[[UpstreamCluster], Entry]
) -> None:
    entry = connection(kubernetes)
    kubeconfig = kubernetes.kubeconfig("someone", credentials=TOKEN, connection=entry)
    async with connected(kubeconfig) as api:
        with pytest.raises(ConnectionFailed, match="certificate"):
            await whoami(api)


async def test_a_proxy_is_used(kubernetes: UpstreamCluster) -> None:
    with tunnel() as proxy:
        entry = _authority_file(kubernetes) | {"proxy-url": proxy.url}
        kubeconfig = kubernetes.kubeconfig("someone", credentials=TOKEN, connection=entry)
        async with connected(kubeconfig) as api:
            assert (await whoami(api)).name == "token-reader"
    assert set(proxy.targets) == {f"127.0.0.1:{kubernetes.port}"}

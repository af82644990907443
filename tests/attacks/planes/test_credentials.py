"""What the server shows to a backend is of no use on any plane."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kvestigate.cluster.plane.access.authn.plane_clients import client_authority
from kvestigate.cluster.plane.egress.addresses import Allowance
from kvestigate.cluster.plane.egress.credentials import kubelet_authority, kubelet_credentials
from kvestigate.cluster.plane.front.data_directory import DataDirectory
from kvestigate.errors import ConnectionFailed
from kvestigate.http.certificates import CertificateAuthority, subject_of
from kvestigate.http.message import Request, Response
from kvestigate.http.pool import HttpClient
from kvestigate.http.server import serve
from kvestigate.http.tls import client_context, server_context
from tests.attacks.planes.conftest import CANARY, A, B, Site, opened, options_in

NOW = datetime.now(UTC)
SECRET = f"{B}/api/v1/namespaces/default/secrets/top"
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def node(
    site: Site, address: str, port: int, name: str = "evil", kind: str = "InternalIP"
) -> None:
    """A Node of plane a whose kubelet is said to be at an address."""
    made = await site.ann.post(f"{A}/api/v1/nodes", {"metadata": {"name": name}})
    assert made.status == 201, made.text
    kind = "InternalIP" if set(address) <= set("0123456789abcdef:.%") else "Hostname"
    status: dict[str, Any] = {
        "addresses": [{"type": kind, "address": address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    patched = await site.ann.patch(f"{A}/api/v1/nodes/{name}/status", {"status": status})
    assert patched.status == 200, patched.text


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "localhost", "0.0.0.0"]
)
async def test_a_node_at_the_servers_own_address_is_not_a_way_in(site: Site, address: str) -> None:
    await node(
        site, address, site.port, kind="Hostname" if address == "localhost" else "InternalIP"
    )
    for path in (SECRET, "/api/v1/nodes", "/clusters"):
        reply = await site.ann.get(f"{A}/api/v1/nodes/evil/proxy{path}")
        assert reply.status == 400, reply.text
        assert CANARY not in reply.text
    reply = await site.ann.post(f"{A}/api/v1/nodes/evil/proxy{REVIEW}", {})
    assert "system:masters" not in reply.text
    assert reply.status == 400


async def shown_to_a_kubelet(tmp_path: Path, plane: str) -> list[tuple[str, tuple[str, ...]]]:
    """Names and groups that a kubelet with a certificate of a plane is shown by plane a."""
    certificates: list[bytes] = []

    async def handle(request: Request) -> Response:
        assert request.peer.certificate is not None
        certificates.append(request.peer.certificate)
        return Response(200, [], b"ok")

    authority = CertificateAuthority(DataDirectory(tmp_path / "data").authority(NOW).pair)
    kubelets = kubelet_authority(authority, plane, NOW)
    pair = kubelets.issue_server("node", ["127.0.0.1"], now=NOW)
    tls = server_context(
        certificate=pair.certificate, key=pair.key, client_ca=kubelets.pair.certificate
    )
    async with await serve(handle, tls=tls) as kubelet:
        allowed = (Allowance.parse("127.0.0.1"),)
        async with opened(options_in(tmp_path, allow_egress=allowed)) as site:
            await node(site, "127.0.0.1", kubelet.address[1])
            reply = await site.ann.get(f"{A}/api/v1/nodes/evil/proxy/x")
    assert (reply.status == 200) == bool(certificates), reply.text
    return [subject_of(certificate) for certificate in certificates]


async def test_a_kubelet_of_the_plane_sees_a_name_without_power(tmp_path: Path) -> None:
    DataDirectory(tmp_path / "data").prepare()
    shown = await shown_to_a_kubelet(tmp_path, "a")
    assert shown == [("kube-apiserver-kubelet-client", ())]


async def test_a_kubelet_of_another_plane_is_neither_believed_nor_shown_anything(
    tmp_path: Path,
) -> None:
    DataDirectory(tmp_path / "data").prepare()
    assert await shown_to_a_kubelet(tmp_path, "b") == []


async def test_the_front_refuses_what_the_server_shows_to_kubelets(site: Site) -> None:
    credentials = kubelet_credentials(site.started.authority, NOW)
    for plane in ("a", "b", "root"):
        tls = credentials(plane)
        tls.load_verify_locations(cadata=site.started.authority.pair.certificate.decode())
        async with HttpClient(host="127.0.0.1", port=site.port, tls=tls) as client:
            with pytest.raises(ConnectionFailed):
                await client.send(Request("GET", "/version"), timeout=10)


def test_the_credentials_of_two_planes_have_nothing_in_common() -> None:
    server = CertificateAuthority.create("server", now=NOW)
    authorities = [kubelet_authority(server, plane, NOW) for plane in ("a", "b", "root", "ab")]
    keys = {authority.pair.key for authority in (*authorities, server)}
    assert len(keys) == 5
    again = CertificateAuthority(server.pair)
    assert kubelet_authority(again, "a", NOW).pair.key == authorities[0].pair.key


async def test_a_certificate_that_a_plane_issued_is_of_no_use_on_another(site: Site) -> None:
    """Whoever administers a plane can have certificates signed there, for any name and group."""
    authority = client_authority(site.started.authority, "a", NOW)
    pair = authority.issue_client("owner", ["system:masters"], now=NOW)
    tls = client_context(
        ca=site.started.authority.pair.certificate,
        certificate=pair.certificate + authority.pair.certificate,
        key=pair.key,
    )
    async with HttpClient(host="127.0.0.1", port=site.port, tls=tls) as client:
        answers = {
            path: (await client.send(Request("GET", path), timeout=10)).status
            for path in (f"{A}/api/v1/secrets", f"{B}/api/v1/secrets", SECRET, "/api/v1/secrets")
        }
        clusters = await client.send(Request("GET", "/clusters"), timeout=10)
    assert list(answers.values()) == [200, 401, 401, 401]
    assert clusters.status == 401


async def test_a_certificate_of_a_plane_issues_no_others(site: Site) -> None:
    authority = client_authority(site.started.authority, "a", NOW)
    below = authority.intermediate("root", ["kvestigate:clients"], now=NOW)
    pair = below.issue_client("owner", ["system:masters"], now=NOW)
    chain = pair.certificate + below.pair.certificate + authority.pair.certificate
    tls = client_context(
        ca=site.started.authority.pair.certificate, certificate=chain, key=pair.key
    )
    async with HttpClient(host="127.0.0.1", port=site.port, tls=tls) as client:
        with pytest.raises(ConnectionFailed):
            await client.send(Request("GET", "/api/v1/secrets"), timeout=10)

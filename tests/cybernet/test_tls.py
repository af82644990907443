"""A cyberspace over HTTPS: whom agents trust, and what an operator can get wrong."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kvestigate.client.access import Access
from kvestigate.cybernet import remote
from kvestigate.cybernet.agent_module import agent_module
from kvestigate.cybernet.http import listening
from kvestigate.cybernet.serving import gateway
from kvestigate.cybernet.spec import HttpListen, TlsFiles, read_cyberspace
from kvestigate.errors import ConnectionFailed, InputError, UsageError
from kvestigate.http.certificates import CertificateAuthority, KeyPair
from kvestigate_client import CybernetClient
from kvestigate_client.gateway import GatewayUnreachable
from tests.cybernet.conftest import RESEARCH, TOKENS, Document, changed, load
from tests.cybernet.served import ServedSpace

NOW = datetime.datetime.now(datetime.UTC)


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority.create("test", now=NOW)


@pytest.fixture(scope="module")
def pair(authority: CertificateAuthority) -> KeyPair:
    return authority.issue_server("gateway", ["127.0.0.1", "localhost"], now=NOW)


@pytest.fixture
def ca(authority: CertificateAuthority) -> str:
    return authority.pair.certificate.decode()


@pytest.fixture
def files(tmp_path: Path, pair: KeyPair) -> dict[str, str]:
    (tmp_path / "cert.pem").write_bytes(pair.certificate)
    (tmp_path / "key.pem").write_bytes(pair.key)
    return {"cert": str(tmp_path / "cert.pem"), "key": str(tmp_path / "key.pem")}


@pytest.fixture
def space(document: Document, files: dict[str, str], access: Access) -> Iterator[ServedSpace]:
    with ServedSpace(changed("listen.http.tls", files, document), access) as served:
        yield served


def test_agents_that_trust_the_authority_get_in(space: ServedSpace, ca: str) -> None:
    assert space.url.startswith("https://127.0.0.1:")
    client = CybernetClient(space.url, TOKENS["ada"], ca=ca)
    assert client.call("report.run", {"name": "nodes"})["report"]["nodes"] == []
    assert remote.info(space.url, ca)["name"] == "research-agents"


def test_an_authority_that_is_not_trusted_is_told(space: ServedSpace) -> None:
    with pytest.raises(GatewayUnreachable, match="its certificate is not trusted"):
        CybernetClient(space.url).info()
    with pytest.raises(ConnectionFailed) as caught:
        remote.info(space.url)
    assert "--ca-file" in str(caught.value.hint)


def test_the_helper_trusts_whom_it_was_written_with(space: ServedSpace, ca: str) -> None:
    module: dict[str, Any] = {"__name__": "agent_helper"}
    source = agent_module(space.url, remote.info(space.url, ca), ca)
    exec(compile(source, "agent_helper.py", "exec"), module)  # noqa: S102 - what an agent does
    assert module["client"]().info()["name"] == "research-agents"


def test_an_authority_that_is_none_is_named() -> None:
    with pytest.raises(UsageError, match="ca: is no PEM certificate"):
        remote.info("https://127.0.0.1:1", "nonsense")


@pytest.mark.parametrize(
    ("cert", "key", "said"),
    [
        ("no.pem", "key.pem", "no.pem: the certificate cannot be read"),
        ("cert.pem", "no.pem", "no.pem: the key cannot be read"),
        ("cert.pem", "cert.pem", "cert.pem: the certificate and key cannot be used"),
    ],
)
async def test_files_that_cannot_be_used_are_named(
    document: Document,
    access: Access,
    files: dict[str, str],
    tmp_path: Path,
    cert: str,
    key: str,
    said: str,
) -> None:
    tls = TlsFiles(str(tmp_path / cert), str(tmp_path / key))
    async with gateway(load(document), access) as opened:
        with pytest.raises(InputError) as caught:
            await listening(opened, HttpListen("127.0.0.1", 0, tls))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("tls", "said"),
    [
        ({"cert": "a"}, "listen.http.tls.key"),
        ({"key": "a"}, "listen.http.tls.cert"),
        ({"cert": "a", "key": "b", "ca": "c"}, "listen.http.tls.ca"),
        (True, "listen.http.tls"),
    ],
)
def test_mistakes_in_the_file_are_named(tls: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_cyberspace(changed("listen.http.tls", tls, RESEARCH))


@pytest.mark.parametrize(
    ("host", "tls", "readable"),
    [
        ("127.0.0.1", None, False),
        ("::1", None, False),
        ("localhost", None, False),
        ("0.0.0.0", None, True),
        ("gateway.example", None, True),
        ("0.0.0.0", TlsFiles("a", "b"), False),
    ],
)
def test_only_plain_http_beyond_this_machine_can_be_read(
    host: str, tls: TlsFiles | None, readable: bool
) -> None:
    assert HttpListen(host, 1, tls).readable_by_others is readable

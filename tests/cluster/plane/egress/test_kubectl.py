"""The real kubectl's logs, exec and port-forward, through a plane to a node."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kvestigate.http.certificates import CertificateAuthority
from kvestigate.http.handshake import offered_subprotocols
from kvestigate.http.message import Request, Response, Upgrade, WebSocket
from kvestigate.http.server import serve
from kvestigate.http.spdy_session import SpdyStream, accept_streams
from kvestigate.http.tls import server_context
from tests.cluster.plane.conftest import TOKEN, Api
from tests.cluster.plane.egress.conftest import PODS, Kubelet, now
from tests.upstream import binaries

pytestmark = pytest.mark.real


class Node(Kubelet):
    """Says hello to whoever executes something, and forwards ports to an echo."""

    async def handle(self, request: Request) -> Response | Upgrade:
        usual = await super().handle(request)
        if request.path.startswith("/exec/"):
            return Upgrade(_greet, offered_subprotocols(request)[0])
        if request.path.startswith("/portForward/"):
            return Upgrade(_forward, offered_subprotocols(request)[0])
        return usual


async def _greet(socket: WebSocket) -> None:
    await socket.send(b"\x01hello\n")
    await socket.send(b"\x02careful\n")
    failed = {"reason": "NonZeroExitCode", "details": {"causes": [_EXIT_3]}}
    status = {"metadata": {}, "status": "Failure", "message": "exit code 3", **failed}
    await socket.send(b"\x03" + json.dumps(status).encode())


_EXIT_3 = {"reason": "ExitCode", "message": "3"}


async def _forward(socket: WebSocket) -> None:
    async def echo(stream: SpdyStream) -> None:
        while (data := await stream.read()) is not None:
            if stream.headers["streamtype"] == "data":
                await stream.write(stream.headers["port"].encode() + b":" + data)

    await accept_streams(socket, echo)


@pytest.fixture
def kubelet_type() -> type[Kubelet]:
    return Node


@pytest.fixture
async def kubectl(
    api: Api, authority: CertificateAuthority, tmp_path: Path
) -> AsyncIterator[list[str]]:
    """The start of every command line."""
    await api.patch(f"{PODS}/web/status", {"status": {"phase": "Running"}})
    pair = authority.issue_server("plane", ["127.0.0.1"], now=now())
    tls = server_context(certificate=pair.certificate, key=pair.key)
    async with await serve(api.server.handle, tls=tls) as front:
        cluster = {
            "server": f"https://127.0.0.1:{front.address[1]}",
            "certificate-authority": str(tmp_path / "ca.crt"),
        }
        (tmp_path / "ca.crt").write_bytes(authority.pair.certificate)
        config = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (tmp_path / "config").write_text(json.dumps(config))
        yield [binaries.find().path("kubectl"), f"--kubeconfig={tmp_path / 'config'}"]


async def run(*command: str) -> tuple[int | None, str, str]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    async with asyncio.timeout(40):
        out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def test_logs(kubectl: list[str], kubelet: Kubelet) -> None:
    assert await run(*kubectl, "logs", "web", "--tail=5") == (0, "one\ntwo\n", "")
    assert kubelet.target == "/containerLogs/default/web/main?tailLines=5"


async def test_exec(kubectl: list[str], kubelet: Kubelet) -> None:
    code, out, err = await run(*kubectl, "exec", "web", "--", "sh", "-c", "true")

    assert (code, out) == (3, "hello\n")
    assert err.startswith("careful\n")
    assert kubelet.target.endswith("command=sh&command=-c&command=true")


async def test_port_forward(kubectl: list[str]) -> None:
    forwarding = await asyncio.create_subprocess_exec(
        *kubectl, "port-forward", "pod/web", ":8080", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert forwarding.stdout is not None
        async with asyncio.timeout(40):
            line = (await forwarding.stdout.readline()).decode()
            port = int(line.split(" -> ")[0].rpartition(":")[2])
            answers = await asyncio.gather(*(_exchange(port, text) for text in (b"a", b"b", b"c")))
    finally:
        forwarding.terminate()
        await forwarding.wait()

    assert answers == [b"8080:a", b"8080:b", b"8080:c"]


async def _exchange(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer

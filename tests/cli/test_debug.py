"""`kvestigate debug`, from the command line to the output."""

from __future__ import annotations

import base64
import datetime
import json
from pathlib import Path

import pytest
import yaml

from kvestigate.http.certificates import CertificateAuthority
from kvestigate.http.message import Handler, Request, Response, Upgrade, WebSocket
from tests.cli.conftest import Invoke, Loopback, Start, answering, kubeconfig

POD = {
    "metadata": {"name": "web-0"},
    "spec": {"nodeName": "n1", "containers": [{"name": "app"}]},
    "status": {"phase": "Running"},
}


async def cluster(request: Request) -> Response | Upgrade:
    """As much of an API server as `debug` asks."""
    if request.path.endswith("/exec"):
        return Upgrade(succeed, request.headers.get("sec-websocket-protocol"))
    if request.path.endswith("/selfsubjectreviews"):
        user = request.headers.get("impersonate-user") or "admin"
        body: object = {"status": {"userInfo": {"username": user, "groups": ["ops"]}}}
    elif request.path == "/version":
        body = {"gitVersion": "v1.36.4", "platform": "linux/amd64"}
    else:
        body = POD if request.path.endswith("/web-0") else {"items": []}
    return await _json(body)(request)


def _json(body: object) -> Handler:
    return answering(200, body)


async def succeed(socket: WebSocket) -> None:
    await socket.send(b'\x03{"status":"Success"}')
    await socket.close()


@pytest.fixture
def server(start: Start, home: Path) -> Loopback:
    running = start(cluster)
    (home / "kc").write_text(kubeconfig(running.url, namespace="shop"))
    return running


def test_context(invoke: Invoke, server: Loopback) -> None:
    outcome = invoke("debug", "context", "--kubeconfig", "kc")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == (
        "source:           flag --kubeconfig kc\n"
        "kubeconfig:       kc\n"
        "context:          prod\n"
        "cluster:          c\n"
        "user:             u\n"
        "namespace:        shop\n"
        f"server:           {server.url}\n"
        "authentication:   no credentials, which are never sent over plain http\n"
        "tls:              none (plain http; credentials are not sent)\n"
        "proxy:            (none)\n"
        "server version:   v1.36.4 (linux/amd64)\n"
        "server sees:      admin in ops\n"
    )


def test_context_as_data(invoke: Invoke, server: Loopback, home: Path) -> None:
    shown = invoke("--kubeconfig", "kc", "debug", "context", "-o", "json", "--json", "kept.json")
    report = json.loads(shown.out)
    assert report == json.loads((home / "kept.json").read_text())
    assert (report["server"], report["identity"]["username"]) == (server.url, "admin")
    assert yaml.safe_load(invoke("debug", "context", "--kubeconfig=kc", "-o", "yaml").out) == report


def test_impersonation_reaches_the_server(invoke: Invoke, server: Loopback) -> None:
    outcome = invoke("debug", "context", "--kubeconfig", "kc", "--as", "jane", "-n", "web")
    assert "namespace:        web\n" in outcome.out
    assert "impersonating:    jane\n" in outcome.out
    assert "server sees:      jane in ops\n" in outcome.out


def test_without_the_server_the_rest_is_shown(invoke: Invoke, home: Path) -> None:
    authority = CertificateAuthority.create("kubernetes", now=datetime.datetime.now(datetime.UTC))
    long_ago = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    pair = authority.issue_client("jane", ["dev"], now=long_ago)
    user = {
        "client-certificate-data": base64.b64encode(pair.certificate).decode(),
        "client-key-data": base64.b64encode(pair.key).decode(),
    }
    (home / "kc").write_text(kubeconfig("https://127.0.0.1:1", user=user))
    outcome = invoke("debug", "context", "--kubeconfig", "kc")
    assert outcome.code == 3
    assert (
        "authentication:   client certificate O=dev,CN=jane, expired 2020-12-31 00:00 UTC\n"
    ) in outcome.out
    assert "problem:          127.0.0.1:1 refused the connection\n" in outcome.out
    assert outcome.err.startswith("error: 127.0.0.1:1 refused the connection\n")


def test_api(invoke: Invoke, server: Loopback) -> None:
    outcome = invoke("debug", "api", "--kubeconfig", "kc")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("request:        GET /version\nstatus:         200\n")
    shown = invoke("debug", "api", "/api/v1/pods?limit=1", "--kubeconfig", "kc", "-o", "json").out
    answer = json.loads(shown)
    assert (answer["status"], answer["body"]) == (200, '{"items": []}')


def test_timing(invoke: Invoke, server: Loopback, home: Path) -> None:
    args = ("--samples", "2", "--kubeconfig", "kc", "--json", "t.json")
    outcome = invoke("debug", "timing", *args)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == f"{server.url}, 2 samples each"
    assert lines[2].split() == ["CALL", "CONNECTION", "P50", "FASTEST", "SLOWEST", "SIZE"]
    assert lines[-1].startswith("verdict: ")
    assert json.loads((home / "t.json").read_text())["samples"] == 2


def test_exec_url(invoke: Invoke, server: Loopback) -> None:
    outcome = invoke("debug", "exec-url", "web-0", "--kubeconfig", "kc")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"websocket:   ws://127.0.0.1:{server.port}/api/v1/namespaces/shop/pods/" in outcome.out
    assert "v5.channel.k8s.io   yes        101, v5.channel.k8s.io; " in outcome.out


def test_exec_url_says_with_its_code_that_nothing_works(
    invoke: Invoke, start: Start, home: Path
) -> None:
    (home / "kc").write_text(kubeconfig(start(_json(POD)).url))
    outcome = invoke("debug", "exec-url", "web-0", "--kubeconfig", "kc")
    assert outcome.code == 1
    assert "v4.channel.k8s.io   no" in outcome.out

"""A gateway's client: what is sent, and how failures are told apart."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pytest

from kvestigate_client import gateway
from kvestigate_client.gateway import CybernetClient, CybernetError, GatewayUnreachable


class Recorder(BaseHTTPRequestHandler):
    """Answers as it is told, and remembers what it was asked."""

    status: ClassVar[int] = 200
    body: ClassVar[bytes] = b"{}"
    seen: ClassVar[list[tuple[str, str, Any, Any]]] = []
    headers_out: ClassVar[dict[str, str]] = {}

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.seen.append((self.command, self.path, body, self.headers.get("authorization")))
        self.send_response(self.status)
        for name, value in self.headers_out.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.body)

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        """Tests have enough to say."""


@pytest.fixture
def url() -> Iterator[str]:
    Recorder.status, Recorder.body, Recorder.seen, Recorder.headers_out = 200, b"{}", [], {}
    with HTTPServer(("127.0.0.1", 0), Recorder) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_call_has_the_token_and_the_parameters(url: str) -> None:
    Recorder.body = b'{"a": 1}'
    assert CybernetClient(f"{url}/", "t").call("report.run", {"name": "nodes"}) == {"a": 1}
    CybernetClient(url, "t").call("../x y")
    assert Recorder.seen == [
        ("POST", "/api/v1/op/report.run", {"name": "nodes"}, "Bearer t"),
        ("POST", "/api/v1/op/..%2Fx%20y", {}, "Bearer t"),
    ]


def test_info_is_asked_without_the_token(url: str) -> None:
    CybernetClient(url, "t").info()
    assert Recorder.seen == [("GET", "/info", None, None)]


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, "unauthenticated", gateway.Unauthenticated),
        (403, "not_allowed", gateway.NotAllowed),
        (404, "not_found", gateway.NoSuchThing),
        (409, "conflict", gateway.ConflictFound),
        (409, "quota_exceeded", gateway.QuotaExceeded),
        (422, "constraint_violated", gateway.ConstraintViolated),
        (500, "execution_error", gateway.OperationFailed),
        (400, "malformed", gateway.Malformed),
        (413, "too_large", gateway.TooLarge),
        (429, "rate_limited", gateway.RateLimited),
        (503, "unavailable", gateway.Unavailable),
        (504, "timeout", gateway.TookTooLong),
    ],
)
def test_a_refusal_is_an_exception_of_its_kind(
    url: str, status: int, code: str, kind: type[CybernetError]
) -> None:
    Recorder.status = status
    Recorder.body = json.dumps(
        {"error": {"code": code, "message": "m", "reason": "the.rule"}}
    ).encode()
    with pytest.raises(CybernetError) as caught:
        CybernetClient(url).call("x")
    assert type(caught.value) is kind
    assert (caught.value.message, caught.value.reason) == ("m", "the.rule")
    assert caught.value.status == status


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error": "x"}', b'{"error": [1]}'])
def test_a_refusal_in_other_words_is_one_too(url: str, body: bytes) -> None:
    Recorder.status, Recorder.body = 502, body
    with pytest.raises(gateway.OperationFailed, match="answered 502"):
        CybernetClient(url).call("x")


def test_nobody_is_followed_with_the_token(url: str) -> None:
    Recorder.status, Recorder.headers_out = 307, {"location": f"{url}/elsewhere"}
    with pytest.raises(CybernetError):
        CybernetClient(url, "t").call("x")
    assert len(Recorder.seen) == 1


def test_no_answer_at_all(url: str) -> None:
    with pytest.raises(GatewayUnreachable, match="gave no answer"):
        CybernetClient("http://127.0.0.1:1").call("x")
    Recorder.body = b"not json"
    with pytest.raises(GatewayUnreachable):
        CybernetClient(url).info()


@pytest.mark.parametrize(
    ("address", "token"), [("localhost:1", ""), ("file:///etc/passwd", ""), ("http://x", "a\nb")]
)
def test_what_can_be_no_client_is_refused(address: str, token: str) -> None:
    with pytest.raises(ValueError, match=r"base_url|token"):
        CybernetClient(address, token)


def test_a_token_is_not_shown() -> None:
    assert "s3cret" not in repr(CybernetClient("http://x", "s3cret"))

"""A conversion webhook on loopback that both servers ask, in a thread of its own.

Version 1 of its objects has `spec: {host: a, port: b}`, version 2 has `spec: {address: "a:b"}`.
The path says what it answers: `/convert` what is right, every other one is a way to fail.
"""

from __future__ import annotations

import base64
import datetime
import json
import ssl
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kvestigate.http.certificates import CertificateAuthority

Object = dict[str, Any]


@cache
def names() -> dict[str, str]:
    """`converter`: its URL; `ca`: what its certificate is verified with."""
    now = datetime.datetime.now(datetime.UTC)
    authority = CertificateAuthority.create("converters", now=now)
    pair = authority.issue_server("converter", ["127.0.0.1"], now=now)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as both:
        both.write(pair.certificate + pair.key)
        both.flush()
        context.load_cert_chain(both.name)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    ca = base64.b64encode(authority.pair.certificate).decode()
    return {"converter": f"https://127.0.0.1:{server.server_address[1]}", "ca": ca}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["content-length"])))
        name = self.path.partition("?")[0].strip("/")
        status, body = 200, b"no JSON"
        if name == "error":
            status, body = 500, b"broken"
        elif name != "garbage":
            body = json.dumps(_ANSWERS[name](review)).encode()
        self.send_response(status)
        self.send_header("content-type", "text/plain" if status != 200 else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _converted(obj: Object, version: str) -> Object:
    obj = {**obj, "apiVersion": version}
    if not isinstance(spec := obj.get("spec"), dict):
        return obj
    if version.endswith("/v2") and "host" in spec:
        return {**obj, "spec": {"address": f"{spec['host']}:{spec.get('port', '')}"}}
    if version.endswith("/v1") and "address" in spec:
        host, _, port = spec["address"].partition(":")
        return {**obj, "spec": {"host": host, "port": port}}
    return obj


def _answer(review: Object, change: Callable[[Object], Object] = lambda obj: obj) -> Object:
    request = review["request"]
    version = request["desiredAPIVersion"]
    made = [change(_converted(obj, version)) for obj in request["objects"]]
    response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": made}
    return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}


def _with(**fields: Any) -> Callable[[Object], Object]:
    def answer(review: Object) -> Object:
        whole = _answer(review)
        return {**whole, "response": {**whole["response"], **fields}}

    return answer


def _changing(change: Callable[[Object], Object]) -> Callable[[Object], Object]:
    return lambda review: _answer(review, change)


def _meta(**fields: Any) -> Callable[[Object], Object]:
    return _changing(lambda obj: {**obj, "metadata": {**obj["metadata"], **fields}})


_ANSWERS: dict[str, Callable[[Object], Object]] = {
    "convert": _answer,
    "refuse": _with(result={"status": "Failure", "message": "cannot do this"}),
    "mute": _with(result={"status": "Failure"}),
    "none": _with(convertedObjects=[]),
    "stranger": _with(uid="other"),
    "absent": lambda review: {"apiVersion": review["apiVersion"], "kind": review["kind"]},
    "version": _changing(lambda obj: {**obj, "apiVersion": "example.com/v9"}),
    "kind": _changing(lambda obj: {**obj, "kind": "Other"}),
    "rename": _meta(name="other"),
    "uid": _meta(uid="other"),
    "labels": _meta(labels={"converted": "yes"}, annotations=None, finalizers=["a/b"]),
    "bad-labels": _meta(labels={"converted": "not a value!"}),
    "mistyped-labels": _meta(labels={"converted": 1}),
    "bare": _changing(lambda obj: {name: obj[name] for name in obj if name != "metadata"}),
}

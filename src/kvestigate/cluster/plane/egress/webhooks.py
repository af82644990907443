"""Calls of webhooks: admission and conversion ask alike, and go through the one dialer.

Which address a webhook has is a tenant's word, so nothing is sent there but the question, and
what comes back is bounded in time and size.
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64decode
from dataclasses import dataclass
from random import Random
from urllib.parse import urlsplit

import msgspec

from kvestigate import errors
from kvestigate.cluster.plane.egress import endpoints
from kvestigate.cluster.plane.egress.dialer import AddressRefused
from kvestigate.cluster.plane.egress.locate import Known, Outside
from kvestigate.cluster.plane.egress.reach import Egress
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.errors import ApiError, ConnectionFailed, DeadlineExceeded, NotFound
from kvestigate.http.message import Headers, Request

_OK = 200
_UNKNOWN_AUTHORITY = (18, 19, 20)
"""What OpenSSL finds wrong with a chain that does not end in a CA it knows."""


class CallFailed(Exception):
    """A webhook could not be called, or its answer is not what was asked for."""


class CallRefused(CallFailed):
    """A webhook is at an address that the server does not connect to."""


@dataclass(frozen=True, slots=True)
class Webhooks:
    """The way to the webhooks of one plane."""

    backends: Egress
    state: PlaneState
    """Where Services and their endpoints are looked up."""
    random: Random

    async def post(
        self, config: Object, data: bytes, *, seconds: int, limit: int, agent: str
    ) -> bytes:
        """The body of a webhook's answer of at most `limit` bytes. Raises CallFailed.

        `config`: the `clientConfig` of the webhook.
        """
        url = config.get("url") or _service_url(config["service"])
        prefix = f'Post "{url}?timeout={seconds}s": '
        try:
            target = self._target(url, config)
        except ApiError as error:
            raise CallFailed(prefix + error.message) from None
        headers = Headers(
            [
                ("user-agent", agent),
                ("accept", "application/json, */*"),
                ("content-type", "application/json"),
            ]
        )
        path = urlsplit(url).path or "/"
        request = Request("POST", path, f"timeout={seconds}s", headers, data)
        try:
            async with asyncio.timeout(seconds):
                client = await self.backends.client(target)
                answer = await client.send(request, timeout=None)
                body = await answer.read(limit=limit)
        except AddressRefused as refusal:
            raise CallRefused(prefix + refusal.message) from None
        except (TimeoutError, DeadlineExceeded):
            raise CallFailed(f"{prefix}context deadline exceeded") from None
        except (ConnectionFailed, errors.InputError) as error:
            raise CallFailed(prefix + _reason(error, url)) from None
        if answer.status != _OK:
            media = answer.headers.get("content-type")
            raise CallFailed(complaint(answer.status, media, body))
        return body

    def _target(self, url: str, config: Object) -> Outside | Known:
        parts, bundle = urlsplit(url), config.get("caBundle")
        ca = b64decode(bundle) if bundle else None
        if "service" not in config:
            return Outside(parts.hostname or "", parts.port or 443, ca)
        name, namespace = config["service"]["name"], config["service"]["namespace"]
        if self.state.get(endpoints.SERVICES, namespace, name) is None:
            raise NotFound(f'service "{name}" not found')
        port = str(parts.port)
        at = endpoints.behind(self.state, self.random, namespace, name, port, tls=True)
        return Known(at, f"{name}.{namespace}.svc", ca)


def _service_url(service: Object) -> str:
    host = f"{service['name']}.{service['namespace']}.svc:{service['port']}"
    return f"https://{host}/{(service.get('path') or '').lstrip('/')}"


def _reason(error: errors.KvestigateError, url: str) -> str:
    cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        unknown = cause.verify_code in _UNKNOWN_AUTHORITY
        why = "certificate signed by unknown authority" if unknown else cause.verify_message
        return f"tls: failed to verify certificate: x509: {why}"
    if isinstance(cause, ConnectionRefusedError):
        return f"dial tcp {urlsplit(url).netloc}: connect: connection refused"
    return error.message


_COMPLAINTS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    403: "the server does not allow access to the requested resource",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
}
_SERVER_ERROR = 500


def complaint(code: int, media: str, body: bytes) -> str:
    """The error text for an HTTP answer that is not a review: its body or its code. Pure."""
    try:
        status = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status" and status.get("message"):
        return str(status["message"])
    if code >= _SERVER_ERROR:
        text = not media or media.startswith("text/")
        answer = body.decode(errors="replace").strip() if text else "unknown"
        return f'an error on the server ("{answer}") has prevented the request from succeeding'
    unclear = (
        f"the server responded with the status code {code} but did not return more information"
    )
    return _COMPLAINTS.get(code, unclear)

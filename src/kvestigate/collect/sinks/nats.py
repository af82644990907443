"""A stream of NATS JetStream.

Every message carries the event's id as `Nats-Msg-Id`: what comes again after a restart is
recognised by the server and stored once, within the stream's own window for duplicates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from kvestigate.collect.sinks.interface import Rejected, Unavailable
from kvestigate.errors import UsageError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext

_TIMEOUT = 10.0
_IN_FLIGHT = 256
"""Messages that wait for their acknowledgement at a time."""


class _Identified(msgspec.Struct):
    id: str | None = None


_ID = msgspec.json.Decoder(_Identified)


class NatsSink:
    """Publishes to one subject; the connection is made with the first lines."""

    name = "nats"

    def __init__(self, url: str, subject: str, *, stream: str = "", credentials: str = "") -> None:
        """`stream` is made for the subject if it is not there; without it one has to be."""
        try:
            import nats  # noqa: F401 - whether it is installed, before anything is collected
        except ImportError:
            raise UsageError(
                "--nats needs the NATS client", hint="pip install 'kvestigate[nats]'"
            ) from None
        self._url = url
        self._subject = subject
        self._stream = stream
        self._credentials = credentials
        self._failure: Exception | None = None
        """What the client met last; what it raises in the end says less."""
        self._client: Client | None = None
        self._jetstream: JetStreamContext | None = None

    async def send(self, lines: Sequence[bytes]) -> None:
        from nats.errors import Error, MaxPayloadError
        from nats.js.errors import NoStreamResponseError

        try:
            self._failure = None
            jetstream = self._jetstream or await self._connected()
            for start in range(0, len(lines), _IN_FLIGHT):
                await self._publish(jetstream, lines[start : start + _IN_FLIGHT])
        except MaxPayloadError as error:
            raise Rejected(f"an event is larger than the server accepts: {error}") from error
        except NoStreamResponseError as error:
            raise Unavailable(
                f"no stream of {self._url} accepts the subject {self._subject}",
                hint="create a stream, or let --nats-stream create one",
            ) from error
        except (Error, OSError, TimeoutError) as error:
            await self.aclose()
            why = self._failure or error or "no answer"
            raise Unavailable(f"{_without_secrets(self._url)}: {why}") from error

    async def aclose(self) -> None:
        client, self._client, self._jetstream = self._client, None, None
        if client is not None:
            await client.close()

    async def _connected(self) -> JetStreamContext:
        import nats

        if self._client is None:
            # Whether and when to try again is the lane's to decide.
            self._client = await nats.connect(
                self._url,
                name="k8s-collect",
                user_credentials=self._credentials or None,
                connect_timeout=_TIMEOUT,
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                error_cb=self._failed,
            )
        jetstream = self._client.jetstream(
            timeout=_TIMEOUT, publish_async_max_pending=2 * _IN_FLIGHT
        )
        if self._stream:
            await self._ensure_stream(jetstream)
        self._jetstream = jetstream
        return jetstream

    async def _ensure_stream(self, jetstream: JetStreamContext) -> None:
        from nats.js.errors import NotFoundError

        try:
            await jetstream.stream_info(self._stream)
        except NotFoundError:
            await jetstream.add_stream(name=self._stream, subjects=[self._subject])

    async def _failed(self, failure: Exception) -> None:
        self._failure = failure

    async def _publish(self, jetstream: JetStreamContext, lines: Sequence[bytes]) -> None:
        """All of them are stored when this returns, in order."""
        acknowledged = [
            await jetstream.publish_async(self._subject, line, headers=_headers(line))
            for line in lines
        ]
        async with asyncio.timeout(_TIMEOUT):
            await asyncio.gather(*acknowledged)


def _headers(line: bytes) -> dict[str, str] | None:
    identity = _ID.decode(line).id
    return {"Nats-Msg-Id": identity} if identity else None


def _without_secrets(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"

"""The plainest possible HTTPS client: sets the scene for a test and checks its outcome."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any

Json = dict[str, Any]


class Refused(Exception):
    """The server answered with something other than success."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"{status}: {body[:2000].decode(errors='replace')}")
        self.status = status
        self.body = body


class Judge:
    """One kept-alive connection as one user; for one thread at a time, and to be closed."""

    def __init__(
        self, port: int, context: ssl.SSLContext | None, *, token: str = "", timeout: float = 30
    ) -> None:
        self._token = token
        self._connection: http.client.HTTPConnection = (
            http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=timeout)
            if context
            else http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        )

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def get(self, path: str) -> Json:
        return self.send("GET", path)

    def post(self, path: str, body: Json) -> Json:
        return self.send("POST", path, body)

    def put(self, path: str, body: Json) -> Json:
        return self.send("PUT", path, body)

    def ensure(self, path: str, body: Json) -> None:
        """Create it unless it is there."""
        try:
            self.post(path, body)
        except Refused as refused:
            if refused.status != 409:
                raise

    def merge(self, path: str, body: Json) -> Json:
        return self.send("PATCH", path, body, content_type="application/merge-patch+json")

    def delete(self, path: str) -> Json:
        return self.send("DELETE", path)

    def send(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        content_type: str = "application/json",
    ) -> Json:
        document: Json = json.loads(self.exchange(method, path, body, content_type))
        return document

    def answers(self, path: str) -> bool:
        """Whether a GET succeeds at all; a refused connection is a no."""
        try:
            self.exchange("GET", path)
        except (Refused, OSError, http.client.HTTPException):
            return False
        return True

    def exchange(
        self,
        method: str,
        path: str,
        body: Json | bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> bytes:
        """The body of a successful answer. A dropped connection is opened again next time."""
        try:
            self.begin(method, path, body, content_type, accept)
            response = self._connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        if response.status >= 300:
            raise Refused(response.status, content)
        return content

    def begin(
        self,
        method: str,
        path: str,
        body: Json | bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> None:
        """Ask, and leave the answer unread."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body)
        headers = {"Accept": accept, "Content-Type": content_type, "User-Agent": "judge"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        self._connection.request(method, path, data, headers)

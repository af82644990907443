"""A plain client of a node's kubelet API."""

from __future__ import annotations

from kvestigate.cluster.node.agent.agent import Agent
from kvestigate.http.message import Headers, Request, WebSocket
from kvestigate.http.pool import HttpClient
from kvestigate.http.tls import client_context

SECONDS = 20.0


class Kubelet:
    """Speaks to one agent; believes any certificate."""

    def __init__(self, agent: Agent, *, token: str = "") -> None:
        host, port = agent.address
        self._client = HttpClient(host=host, port=port, tls=client_context(insecure=True))
        self._headers = Headers([("authorization", f"Bearer {token}")] if token else [])

    async def __aenter__(self) -> Kubelet:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def get(self, path: str, query: str = "") -> tuple[int, str]:
        request = Request("GET", path, query, self._headers)
        answer = await self._client.send(request, timeout=SECONDS)
        return answer.status, (await answer.read()).decode()

    async def text(self, path: str, query: str = "") -> str:
        status, text = await self.get(path, query)
        assert status == 200, text
        return text

    async def open(self, path: str, query: str, *protocols: str) -> WebSocket:
        request = Request("GET", path, query, self._headers)
        return await self._client.upgrade(request, protocols, timeout=SECONDS)

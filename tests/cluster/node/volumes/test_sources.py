"""Tokens of pods."""

from __future__ import annotations

import msgspec

from kvestigate.cluster.node.spec.pod import Pod, TokenSource
from kvestigate.cluster.node.volumes.sources import Tokens
from tests.virtual_clock import VirtualClock


async def test_a_token_is_kept_until_most_of_its_life_is_spent() -> None:
    clock = VirtualClock()
    asked: list[str] = []

    async def issue(pod: Pod, wanted: TokenSource) -> str:
        asked.append(wanted.audience)
        return f"token {len(asked)}"

    tokens = Tokens(issue, clock)
    pod = msgspec.convert({"metadata": {"uid": "u"}}, Pod)
    wanted = TokenSource(path="token", audience="me", expiration_seconds=1000)
    assert await tokens.get(pod, wanted) == "token 1"
    clock.advance(799)
    assert await tokens.get(pod, wanted) == "token 1"
    clock.advance(1)
    assert await tokens.get(pod, wanted) == "token 2"
    assert await tokens.get(pod, TokenSource(path="token", audience="you")) == "token 3"
    tokens.forget("u")
    assert await tokens.get(pod, wanted) == "token 4"

"""Service account tokens of pods, renewed before they end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kvestigate.aio.clock import Clock
from kvestigate.cluster.node.spec.pod import Pod, TokenSource

_SPENT = 0.8
"""The part of its life after which a token is replaced, as kubelets do."""

Issue = Callable[[Pod, TokenSource], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class _Issued:
    text: str
    renew_at: float


class Tokens:
    """Hands out the same token for as long as it is good."""

    def __init__(self, issue: Issue, clock: Clock) -> None:
        self._issue = issue
        self._clock = clock
        self._issued: dict[tuple[str, str, str], _Issued] = {}
        """By the pod's uid, audience and path."""

    async def get(self, pod: Pod, wanted: TokenSource) -> str:
        key = (pod.metadata.uid, wanted.audience, wanted.path)
        kept = self._issued.get(key)
        if kept is None or self._clock.now() >= kept.renew_at:
            begun = self._clock.now()
            text = await self._issue(pod, wanted)
            kept = _Issued(text, begun + wanted.expiration_seconds * _SPENT)
            self._issued[key] = kept
        return kept.text

    def forget(self, pod_uid: str) -> None:
        for key in [key for key in self._issued if key[0] == pod_uid]:
            del self._issued[key]

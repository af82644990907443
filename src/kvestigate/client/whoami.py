"""Who the server thinks we are, asked for in a way that changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kvestigate.client.api import Api
from kvestigate.errors import ConnectionFailed

_REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the server thinks we are."""

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)


async def whoami(api: Api) -> Identity:
    """Servers before 1.28 answer `NotFound`."""
    answer = await ask_json(api, "POST", _REVIEWS, _REVIEW)
    try:
        return msgspec.convert(answer["status"]["userInfo"], Identity)
    except (KeyError, TypeError, msgspec.ValidationError) as odd:
        raise stranger(f"POST {_REVIEWS} did not answer with a SelfSubjectReview") from odd


async def ask_json(
    api: Api, method: str, path: str, body: Mapping[str, Any] | bytes = b""
) -> dict[str, Any]:
    """A JSON object; any other answer is not that of an API server."""
    data = await api.request(method, path, body=body)
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.DecodeError as odd:
        raise stranger(f"the answer to {method} {path} is not a JSON object") from odd


def stranger(message: str) -> ConnectionFailed:
    return ConnectionFailed(
        message, hint="this may not be a Kubernetes API server, or a proxy is in the way"
    )

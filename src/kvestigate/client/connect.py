"""Connects an `Access` to an `Api` that is closed when the block is left."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.client.exchange import TIMEOUT
from kvestigate.client.http import HttpTransport


@asynccontextmanager
async def connect(access: Access) -> AsyncIterator[Api]:
    """The API server of `access`; nothing is sent before the first call."""
    api = Api(
        HttpTransport(access),
        namespace=access.namespace,
        timeout=_timeout(access.request_timeout),
    )
    try:
        yield api
    finally:
        await api.aclose()


def _timeout(request_timeout: float | None) -> float:
    """As kubectl reads it: 0 means that a request may take any time."""
    if request_timeout is None:
        return TIMEOUT
    return request_timeout or math.inf

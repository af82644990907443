"""A launcher's server on loopback: root is an administrator, mallory and alice are users."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kvestigate.client.api import Api
from kvestigate.jobs.remote.launcher import Remote
from kvestigate.jobs.server.serve import bound, serving
from kvestigate.jobs.server.settings import read_settings
from kvestigate.jobs.users import User
from tests.jobs.conftest import api

__all__ = ["api"]

SETTINGS = read_settings({"admins": ["root"], "hosts": ["jobs.example.com", "192.0.2.7"]})


@pytest.fixture
async def url(api: Api) -> AsyncIterator[str]:
    async with serving(api, bound("127.0.0.1", 0), SETTINGS) as url:
        yield url


@pytest.fixture
async def mallory(url: str) -> AsyncIterator[Remote]:
    async with Remote(url, User("mallory")) as launcher:
        yield launcher


@pytest.fixture
async def root(url: str) -> AsyncIterator[Remote]:
    async with Remote(url, User("root")) as launcher:
        yield launcher

"""A plane with something in it."""

from __future__ import annotations

import pytest

from tests.cluster.plane.conftest import Api

INSIDE = "/clusters/alpha/control-plane"


def config_map(name: str, **data: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "data": data}


MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def alpha(api: Api) -> Api:
    """A plane called alpha, for its administrator."""
    await api.post("/clusters", {"id": "alpha"})
    return Api(api.server, INSIDE)

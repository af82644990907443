"""The filters before every route."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvestigate.cluster.plane.access.authn.jwt import SigningKey
from kvestigate.cluster.plane.access.authn.service_accounts import TokenIssuer
from kvestigate.cluster.plane.access.authn.union import Credentials
from kvestigate.cluster.plane.access.authz.rbac import Rbac
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.store.sqlite.backend import SqliteBackend
from kvestigate.cluster.plane.store.store import Store
from tests.cluster.plane.conftest import TOKEN, USERS, Api

ROOT = "/clusters/other/control-plane"


def connect(store: Store, issuer: TokenIssuer) -> Api:
    return Api(ApiServer(store, Credentials(USERS, issuer), Rbac(), issuer=issuer), ROOT)


@pytest.mark.parametrize(
    ("token", "status", "loaded"),
    [
        ("nonsense", 401, False),
        (SigningKey.generate().sign({"sub": "forged"}), 401, False),
        (TOKEN, 200, True),
    ],
)
async def test_strangers_do_not_make_a_server_load_a_plane(
    issuer: TokenIssuer, tmp_path: Path, token: str, status: int, loaded: bool
) -> None:
    async with Store(SqliteBackend(tmp_path / "planes")) as store:
        await connect(store, issuer).post("/api/v1/namespaces", {"metadata": {"name": "a"}})
    async with Store(SqliteBackend(tmp_path / "planes")) as store:
        api = connect(store, issuer)
        answer = await api.get("/api/v1/namespaces/a", authorization=f"Bearer {token}")

        assert answer.status == status
        assert (store.loaded("other") is not None) is loaded

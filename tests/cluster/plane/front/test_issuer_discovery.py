"""How others check the tokens of service accounts."""

from __future__ import annotations

from kvestigate.cluster.plane.access.authn.service_accounts import TokenIssuer
from tests.cluster.plane.conftest import Api


async def test_the_configuration_leads_to_the_key(guarded: Api, issuer: TokenIssuer) -> None:
    other = Api(guarded.server, "/clusters/other/control-plane")
    found = await other.get("/.well-known/openid-configuration", host="example.com:6443")

    assert found.headers.get("cache-control") == "public, max-age=3600"
    assert found.body["issuer"] == issuer.issuer("other")
    keys = "/clusters/other/control-plane/openid/v1/jwks"
    assert found.body["jwks_uri"] == f"https://example.com:6443{keys}"
    answer = await Api(guarded.server).get(keys)
    assert answer.headers.get("content-type") == "application/jwk-set+json"
    assert issuer.key.id in answer.body


async def test_only_accounts_may_look(guarded: Api) -> None:
    path = "/openid/v1/jwks"
    account = "system:serviceaccount:default:default"

    assert (await guarded.get(path, authorization="Bearer jane")).status == 403
    assert (await guarded.get(path, impersonate_user=account)).status == 200

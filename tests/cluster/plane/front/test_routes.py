"""What is not a resource: the index, the version, health, the keys of the token issuer."""

from __future__ import annotations

import pytest

from kvestigate.cluster.plane.access.authn.service_accounts import TokenIssuer
from tests.cluster.plane.conftest import Api


async def test_the_index_lists_what_is_there(api: Api) -> None:
    paths = (await api.get("/")).body["paths"]
    assert paths == sorted(paths)
    assert {"/api/v1", "/apis/apps/v1", "/healthz/ping", "/openapi/v3", "/version"} <= set(paths)
    for path in paths:
        assert (await api.get(path)).status == 200, path


async def test_tools_can_tell_the_release(api: Api) -> None:
    version = (await api.get("/version")).body
    assert (version["major"], version["minor"]) == ("1", "36")
    assert version["gitVersion"].startswith("v1.36.")
    assert version["gitVersion"].endswith("+kvestigate")


@pytest.mark.parametrize("endpoint", ["healthz", "livez", "readyz"])
async def test_health_is_told_in_a_word_or_check_by_check(endpoint: str, api: Api) -> None:
    assert (await api.get(f"/{endpoint}")).body == "ok"
    assert (await api.get(f"/{endpoint}/ping")).body == "ok"
    verbose = (await api.get(f"/{endpoint}?verbose")).body
    assert verbose.splitlines() == ["[+]ping ok", "[+]store ok", f"{endpoint} check passed"]


@pytest.mark.parametrize(
    ("excluded", "line"),
    [
        ("store", "[+]store excluded: ok"),
        ("etcd", 'warn: some health checks cannot be excluded: no matches for "etcd"'),
    ],
)
async def test_checks_can_be_left_out(excluded: str, line: str, api: Api) -> None:
    verbose = (await api.get(f"/readyz?verbose&exclude={excluded}")).body
    assert line in verbose.splitlines()


async def test_an_unknown_check_is_not_found(api: Api) -> None:
    assert (await api.get("/readyz/nope")).status == 404


@pytest.mark.parametrize("path", ["/api", "/version", "/apis/apps/v1"])
async def test_documents_are_only_read(path: str, api: Api) -> None:
    answer = await api.post(path, {})
    assert (answer.status, answer.body["reason"]) == (405, "MethodNotAllowed")


async def test_the_issuer_configuration_leads_to_the_key(guarded: Api, issuer: TokenIssuer) -> None:
    other = Api(guarded.server, "/clusters/other/control-plane")
    found = await other.get("/.well-known/openid-configuration", host="example.com:6443")

    assert found.headers.get("cache-control") == "public, max-age=3600"
    assert found.body["issuer"] == issuer.issuer("other")
    keys = "/clusters/other/control-plane/openid/v1/jwks"
    assert found.body["jwks_uri"] == f"https://example.com:6443{keys}"
    answer = await Api(guarded.server).get(keys)
    assert answer.headers.get("content-type") == "application/jwk-set+json"
    assert issuer.key.id in answer.body


async def test_only_service_accounts_may_read_the_issuer_keys(guarded: Api) -> None:
    path = "/openid/v1/jwks"
    account = "system:serviceaccount:default:default"

    assert (await guarded.get(path, authorization="Bearer jane")).status == 403
    assert (await guarded.get(path, impersonate_user=account)).status == 200


PLANE = "/clusters/other/control-plane"


@pytest.mark.parametrize("root", ["", PLANE])
@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version", "/version/"])
async def test_probes_need_no_credentials(path: str, root: str, guarded: Api) -> None:
    answer = await Api(guarded.server, root).get(path, authorization="")
    assert answer.status == 200
    assert answer.body == "ok" or answer.body["major"] == "1"
    assert guarded.server.planes.store.loaded("other") is None


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/readyz/ping", {}),
        ("GET", "/readyz//", {}),
        ("GET", "/", {}),
        ("GET", "/api", {}),
        ("GET", "/metrics", {}),
        ("GET", "/openapi/v3", {}),
        ("GET", "/clusters", {}),
        ("GET", "/api/v1/namespaces/default/pods", {}),
        ("POST", "/version", {}),
        ("HEAD", "/healthz", {}),
        ("GET", "/healthz", {"authorization": "Bearer unknown"}),
        ("GET", "/healthz", {"authorization": "Basic YTpi"}),
        ("GET", "/healthz", {"impersonate_user": "admin"}),
        ("GET", f"{PLANE}/api", {}),
        ("GET", f"{PLANE}/snapshots", {}),
    ],
)
async def test_nothing_else_is_answered_without_credentials(
    method: str, path: str, headers: dict[str, str], guarded: Api
) -> None:
    answer = await guarded.call(method, path, **{"authorization": "", **headers})
    assert answer.status == 401
    assert guarded.server.planes.store.loaded("other") is None


async def test_an_operator_can_close_the_probes(guarded: Api) -> None:
    await guarded.get("/api/v1/namespaces/default")
    role = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:public-info-viewer"
    assert (await guarded.delete(role)).status == 200
    assert (await guarded.get("/healthz", authorization="")).status == 401
    assert (await guarded.get("/healthz")).status == 200

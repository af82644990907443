"""An identity of one plane is nobody in another, by whatever path, header or token it asks."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from kvestigate.cluster.plane.model.user import MASTERS, Insider, User
from kvestigate.http.message import Headers, Request, Response
from tests.attacks.planes.conftest import CANARY, RBAC, A, B, Site, Tenant, binding
from tests.attacks.planes.test_copies import FLEET_RIGHTS, FLEETS, MAKE, fleet, grant

SECRETS = "/api/v1/namespaces/default/secrets"
ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
PATHS = [
    f"/clusters/a/control-plane/../../b/control-plane{SECRETS}",
    f"/clusters/a/../b/control-plane{SECRETS}",
    f"/clusters/a/control-plane/..%2f..%2fb/control-plane{SECRETS}",
    f"/clusters/a/control-plane/%2e%2e/%2e%2e/b/control-plane{SECRETS}",
    f"/clusters/a%2f..%2fb/control-plane{SECRETS}",
    f"/clusters/a%00b/control-plane{SECRETS}",
    f"/clusters/b%2fcontrol-plane{SECRETS}",
    f"/clusters/%62/control-plane{SECRETS}",
    f"/clusters/B/control-plane{SECRETS}",
    f"/clusters/b./control-plane{SECRETS}",
    f"/clusters/b/control-plane/{SECRETS}",
    f"/clusters/b/control-plane//{SECRETS}",
    f"/clusters//b/control-plane{SECRETS}",
    f"//clusters/b/control-plane{SECRETS}",
    f"/./clusters/b/control-plane{SECRETS}",
    f"/clusters/./b/control-plane{SECRETS}",
    f"/clusters/b/control-plane;x{SECRETS}",
    f"/clusters/b/control-plane%20{SECRETS}",
    f"/clusters/b/control%2dplane{SECRETS}",
    f"/clusters/a/control-plane/clusters/b/control-plane{SECRETS}",
    f"/clusters/a/control-plane/clusters/b{SECRETS}",
    f"/clusters/root/control-plane/clusters/b/control-plane{SECRETS}",
    f"/clusters/a/control-plane{SECRETS}/..%2f..%2f..%2f..%2fb",
    f"/clusters/a/control-plane/api/v1/namespaces/..%2f..%2fb{SECRETS}",
    f"/clusters/a\\..\\b/control-plane{SECRETS}",
    "/clusters/b/control-plane/snapshot",
    "/clusters/b/control-plane/events",
    "/clusters/b/control-plane/checkpoints",
    "/clusters/b/control-plane/diff?from=1",
    f"/clusters/b/control-plane{SECRETS}?watch=1",
    "/clusters/a/control-plane/diff?from=plane:b",
    "/clusters/a/control-plane/diff?from=plane:../b",
    "/clusters/a/control-plane/diff?from=checkpoint:../b",
    "/clusters/b",
    "/clusters",
    "/metrics",
    "/snapshot",
    "/api/v1/secrets",
]
HEADERS: list[dict[str, str]] = [
    {"impersonate_user": "ben"},
    {"impersonate_user": "kvestigate-admin", "impersonate_group": "system:masters"},
    {"impersonate_user": "system:serviceaccount:default:default"},
    {"impersonate_user": "system:node:x", "impersonate_group": "system:nodes"},
    {"impersonate_user": "", "impersonate_group": "system:masters"},
    {"impersonate_user": "ann", "impersonate_extra_x": "y"},
    {"impersonate_uid": "1"},
    {"impersonate_group": "system:masters"},
    {"x_remote_user": "kvestigate-admin", "x_remote_group": "system:masters"},
    {"x_forwarded_user": "ben"},
    {"x_original_url": f"{B}{SECRETS}", "x_rewrite_url": f"{B}{SECRETS}"},
    {"x_plane_must_exist": "false"},
    {"x_http_method_override": "DELETE"},
    {"x_ssl_client_cert": "x", "x_client_cert": "x"},
    {"host": "b"},
    {"cookie": "token=x"},
]


def forged(**claims: Any) -> str:
    """An unsigned token."""

    def part(value: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(value)).decode().rstrip("=")

    account = {"name": "default", "uid": "1"}
    about = {"namespace": "default", "serviceaccount": account}
    payload = {
        "iss": "https://kubernetes.default.svc/clusters/b/control-plane",
        "aud": ["https://kubernetes.default.svc/clusters/b/control-plane"],
        "sub": "system:serviceaccount:default:default",
        "nbf": 0,
        "exp": 1 << 40,
        "kubernetes.io": about,
        **claims,
    }
    return f"{part({'alg': 'none'})}.{part(payload)}."


TOKENS = [
    *("", " ", "x", "ann-token ben-token", "ben-token,", "BEN-TOKEN", "ben-toke", "sha256:x"),
    *("..", "a.b.c", "." * 1_000, "\xe9", "x" * 50_000, forged(), forged(sub="system:masters")),
    forged().replace("bm9uZQ", "SFMyNTY"),
    forged(iss="https://kubernetes.default.svc"),
]


async def test_as_many_cases_as_promised() -> None:
    count = len(PATHS) + len(HEADERS) * 3 + len(TOKENS)
    print(f"{count} paths, headers and tokens")
    assert count >= 100


@pytest.mark.parametrize("path", PATHS)
async def test_no_path_leads_from_one_plane_to_another(site: Site, path: str) -> None:
    for tenant in (site.ann, site.eve):
        reply = await tenant.get(path)
        assert CANARY not in reply.text
        assert 400 <= reply.status < 500, reply.text[:300]
    assert await site.planes() == {"a", "b", "root"}


@pytest.mark.parametrize("headers", HEADERS, ids=str)
@pytest.mark.parametrize("path", [f"{B}{SECRETS}", "/api/v1/secrets", "/clusters"])
async def test_no_header_makes_a_tenant_someone_elsewhere(
    site: Site, headers: dict[str, str], path: str
) -> None:
    reply = await site.ann.get(path, **headers)
    assert CANARY not in reply.text
    assert reply.status in (400, 403), reply.text[:300]


@pytest.mark.parametrize("token", TOKENS, ids=lambda text: text[:16] or "none")
async def test_no_token_that_was_not_given_out(site: Site, token: str) -> None:
    reply = await site.ann.with_token(token).get(f"{B}{SECRETS}")
    assert reply.status in (400, 401, 431), reply.text[:300]


async def issued(tenant: Tenant, root: str, **spec: Any) -> str:
    made = await tenant.post(f"{root}{ACCOUNT}/token", {"spec": spec})
    assert made.status == 201, made.text
    token: str = made.body["status"]["token"]
    return token


async def test_a_token_of_one_plane_is_nobodys_in_another(site: Site) -> None:
    there = "https://kubernetes.default.svc/clusters/b/control-plane"
    for spec in ({}, {"audiences": [there]}, {"audiences": [there, "x"]}):
        tenant = site.ann.with_token(await issued(site.ann, A, **spec))
        for root in (B, ""):
            assert (await tenant.get(f"{root}/version")).status == 401
    review = {"spec": {"token": await issued(site.ann, A), "audiences": [there]}}
    path = f"{B}/apis/authentication.k8s.io/v1/tokenreviews"
    told = await site.ben.post(path, review)
    assert not told.body["status"].get("authenticated")


async def test_a_token_ends_with_its_plane(site: Site) -> None:
    """Another tenant gets the name, and with it the same first accounts."""
    token = await issued(site.ann, A)
    old = site.ann.with_token(token)
    assert (await old.get(f"{A}/version")).status == 200
    assert (await site.owner.delete("/clusters/a")).status == 200
    assert (await old.get(f"{A}/version")).status == 401
    assert (await site.owner.post("/clusters", {"id": "a"})).status == 201
    account = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    given = {**binding("x"), "subjects": [account]}
    assert (await site.owner.post(f"{A}{RBAC}/clusterrolebindings", given)).status == 201
    assert (await old.get(f"{A}{SECRETS}")).status == 401
    new = site.ann.with_token(await issued(site.owner, A))
    assert (await new.get(f"{A}{SECRETS}")).status == 200
    assert (await old.get(f"{A}{SECRETS}")).status == 401


async def test_a_continue_token_continues_only_where_it_was_given(site: Site) -> None:
    first = await site.ben.get(f"{B}/api/v1/namespaces?limit=1")
    token = first.body["metadata"]["continue"]
    reply = await site.ann.get(f"{A}/api/v1/namespaces?limit=5&continue={token}")
    assert CANARY not in reply.text
    assert reply.status in (200, 400, 410, 504)  # Kubernetes' answer to a revision of the future
    for wrong in ("x", "e30", "A" * 10_000, token[:-4]):
        reply = await site.ann.get(f"{A}/api/v1/namespaces?limit=5&continue={wrong}")
        assert reply.status in (200, 400, 410), reply.text[:300]


async def test_a_part_of_the_server_acts_on_its_own_plane_only(site: Site) -> None:
    controller = Insider("a", User("system:kube-controller-manager", (MASTERS,)))
    calls = site.started.act
    for path, status in ((f"{A}{SECRETS}", 200), (f"{B}{SECRETS}", 401), (SECRETS, 401)):
        answer = await calls(controller, Request("GET", path, headers=Headers()))
        assert isinstance(answer, Response)
        assert answer.status == status


async def test_a_policy_of_the_root_plane_cannot_forge_an_author(site: Site) -> None:
    admission = {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["*"],
        "verbs": ["*"],
    }
    await grant(site.owner, "", "eve", "maker", MAKE, FLEET_RIGHTS, admission)
    rule = {"apiGroups": ["kplane.dev"], "apiVersions": ["*"], "operations": ["*"]}
    author = '{"user":{"name":"ben","groups":["system:masters"]}}'
    value = msgspec.json.encode(author).decode()
    where = "/metadata/annotations/kplane.dev~1author"
    steps = f'[JSONPatch{{op: "add", path: "{where}", value: {value}}}]'
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "resources": ["fleets"]}]},
        "reinvocationPolicy": "IfNeeded",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": steps}}],
    }
    path = "/apis/admissionregistration.k8s.io/v1/mutatingadmission"
    made = await site.eve.post(f"{path}policies", {"metadata": {"name": "p"}, "spec": spec})
    assert made.status == 201, made.text
    bound = {"metadata": {"name": "p"}, "spec": {"policyName": "p"}}
    assert (await site.eve.post(f"{path}policybindings", bound)).status == 201
    reply = await site.eve.post(FLEETS, fleet("f", fromPlane="b"))
    if reply.status == 201:
        assert "ben" not in reply.body["metadata"]["annotations"]["kplane.dev/author"]
    else:
        assert reply.status == 403, reply.text

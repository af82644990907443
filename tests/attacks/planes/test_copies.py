"""Who copies, restores or makes a plane needs the rights of all that follows from it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.attacks.planes.conftest import CANARY, RBAC, A, B, Reply, Site, Tenant, binding

FLEETS = "/apis/kplane.dev/v1/fleets"
MAKE = {"nonResourceURLs": ["/clusters"], "verbs": ["post"]}
FLEET_RIGHTS = {"apiGroups": ["kplane.dev"], "resources": ["*"], "verbs": ["*"]}
READ = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
READ_NO_SECRETS = {
    "apiGroups": [""],
    "resources": ["configmaps", "namespaces"],
    "verbs": ["get", "list"],
}


async def grant(owner: Tenant, root: str, user: str, name: str, *rules: Any) -> None:
    role = {"metadata": {"name": name}, "rules": list(rules)}
    assert (await owner.post(f"{root}{RBAC}/clusterroles", role)).status == 201
    bound = binding(user, name)
    bound["roleRef"] = {**bound["roleRef"], "name": name}
    assert (await owner.post(f"{root}{RBAC}/clusterrolebindings", bound)).status == 201


def fleet(name: str, **template: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kplane.dev/v1",
        "kind": "Fleet",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "template": template},
    }


def bound_object(user: str) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        **binding(user, "mine"),
    }


async def members(site: Site, name: str, count: int = 1) -> list[dict[str, Any]]:
    """The members of a Fleet once there are as many, none of them pending."""

    def settled(reply: Reply) -> bool:
        phases = [member["phase"] for member in listed(reply)]
        return len(phases) == count and "Pending" not in phases

    return listed(await site.owner.until(FLEETS, name, settled))


def listed(reply: Reply) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = reply.body.get("status", {}).get("members", [])
    return found


SOURCES = [{"fromPlane": "b"}, {"fromSnapshot": {"clusterID": "b"}}]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("rights", ["none", "some", "read"])
async def test_a_fleet_copies_only_what_its_author_may_read_and_make(
    site: Site, source: dict[str, Any], rights: str
) -> None:
    """ann may make planes and Fleets, and has `rights` in plane b."""
    await grant(site.owner, "", "ann", "maker", MAKE, FLEET_RIGHTS)
    if rights != "none":
        await grant(site.owner, B, "ann", "reader", READ if rights == "read" else READ_NO_SECRETS)
    made = await site.ann.post(FLEETS, fleet("f", **source, objects=[bound_object("ann")]))
    assert made.status == 201, made.text
    [member] = await members(site, "f")
    assert member["phase"] == "Failed", member
    assert "ann" in member["message"]
    assert "f-0000" not in await site.planes()
    stolen = await site.ann.get("/clusters/f-0000/control-plane/api/v1/secrets")
    assert CANARY not in stolen.text


@pytest.mark.parametrize("source", SOURCES)
async def test_an_admin_of_the_source_may_copy_it(site: Site, source: dict[str, Any]) -> None:
    await grant(site.owner, "", "ben", "maker", MAKE, FLEET_RIGHTS)
    objects = [bound_object("eve")]
    made = await site.ben.post(FLEETS, fleet("f", **source, objects=objects))
    assert made.status == 201, made.text
    [member] = await members(site, "f")
    assert member["phase"] == "Ready", member
    secret = "/clusters/f-0000/control-plane/api/v1/namespaces/default/secrets/top"
    assert CANARY in (await site.ben.get(secret)).text
    assert CANARY in (await site.eve.get(secret)).text


async def test_whoever_changes_a_fleet_is_its_author_from_then_on(site: Site) -> None:
    await grant(site.owner, "", "ben", "ben-maker", MAKE, FLEET_RIGHTS)
    await grant(site.owner, "", "ann", "ann-maker", MAKE, FLEET_RIGHTS)
    assert (await site.ben.post(FLEETS, fleet("f", fromPlane="b"))).status == 201
    await members(site, "f")
    objects = {"template": {"objects": [bound_object("ann")]}, "replicas": 2}
    assert (await site.ann.patch(f"{FLEETS}/f", {"spec": objects})).status == 200
    found = await members(site, "f", 2)
    assert [member["phase"] for member in found] == ["Ready", "Failed"]
    for number in ("0000", "0001"):
        stolen = await site.ann.get(f"/clusters/f-{number}/control-plane/api/v1/secrets")
        assert CANARY not in stolen.text


@pytest.mark.parametrize(
    "forged", ['{"user":{"name":"ben"}}', '{"user":{"name":"x","groups":["system:masters"]}}', "x"]
)
async def test_an_author_cannot_be_forged(site: Site, forged: str) -> None:
    await grant(site.owner, "", "ann", "maker", MAKE, FLEET_RIGHTS)
    wanted = fleet("f", fromPlane="b")
    wanted["metadata"]["annotations"] = {"kplane.dev/author": forged}
    assert (await site.ann.post(FLEETS, wanted)).status == 201
    note = {"metadata": {"annotations": {"kplane.dev/author": forged}}}
    assert (await site.ann.patch(f"{FLEETS}/f", note)).status == 200
    assert (await site.ann.patch(f"{FLEETS}/f", {**note, "spec": {"replicas": 2}})).status == 200
    found = await members(site, "f", 2)
    assert {member["phase"] for member in found} == {"Failed"}


async def test_a_fleet_takes_the_right_to_make_planes(site: Site) -> None:
    await grant(site.owner, "", "eve", "fleets-only", FLEET_RIGHTS)
    refused = await site.eve.post(FLEETS, fleet("f"))
    assert refused.status == 403, refused.text
    assert "/clusters" in refused.message
    assert await site.planes() == {"a", "b", "root"}


async def test_nobody_adopts_a_plane_by_writing_a_status(site: Site) -> None:
    """A Fleet deletes its members: whoever writes its status would delete any plane."""
    await grant(site.owner, "", "ann", "maker", MAKE, FLEET_RIGHTS)
    assert (await site.ann.post(FLEETS, fleet("f"))).status == 201
    await members(site, "f")
    status = {"members": [{"clusterID": "b", "phase": "Ready"}]}
    refused = await site.ann.patch(f"{FLEETS}/f/status", {"status": status})
    assert refused.status == 403, refused.text
    assert (await site.ann.delete(f"{FLEETS}/f")).status == 200
    await site.owner.until(FLEETS, "f", lambda reply: reply.status == 404)
    assert await site.planes() == {"a", "b", "root"}


@pytest.mark.parametrize("rights", [(), (READ_NO_SECRETS,)])
async def test_a_fork_takes_the_right_to_read_everything(site: Site, rights: Any) -> None:
    fork = {"nonResourceURLs": ["/fork"], "verbs": ["post"]}
    await grant(site.owner, "", "eve", "maker", MAKE)
    await grant(site.owner, B, "eve", "forker", fork, *rights)
    refused = await site.eve.post(f"{B}/fork", {"name": "copy"})
    assert refused.status == 403, refused.text
    assert "copy" not in await site.planes()
    await grant(site.owner, B, "eve", "reader", READ)
    assert (await site.eve.post(f"{B}/fork", {"name": "copy"})).status == 201


async def test_a_state_of_the_past_gives_nobody_back_what_was_taken(site: Site) -> None:
    """eve was an admin of b, is none any more, and may still fork and restore."""
    urls = {"nonResourceURLs": ["/fork", "/restore", "/checkpoints"], "verbs": ["post"]}
    await grant(site.owner, "", "eve", "maker", MAKE)
    made = await site.owner.post(f"{B}{RBAC}/clusterrolebindings", binding("eve", "eve-admin"))
    assert made.status == 201
    assert (await site.owner.post(f"{B}/checkpoints", {"name": "then"})).status == 201
    await grant(site.owner, B, "eve", "environment", urls, READ)
    gone = await site.owner.delete(f"{B}{RBAC}/clusterrolebindings/eve-admin")
    assert gone.status == 200
    for path, body in (
        ("/restore", {"checkpoint": "then"}),
        ("/fork", {"checkpoint": "then", "name": "copy"}),
    ):
        refused = await site.eve.post(f"{B}{path}", body)
        assert refused.status == 403, refused.text
    assert "copy" not in await site.planes()
    assert (await site.ben.post(f"{B}/restore", {"checkpoint": "then"})).status == 200


async def test_a_restore_takes_the_right_to_write_what_it_changes(site: Site) -> None:
    await grant(
        site.owner, B, "eve", "restorer", {"nonResourceURLs": ["/restore"], "verbs": ["post"]}, READ
    )
    assert (await site.owner.post(f"{B}/checkpoints", {"name": "then"})).status == 201
    maps = f"{B}/api/v1/namespaces/default/configmaps"
    assert (await site.owner.post(maps, {"metadata": {"name": "m"}})).status == 201
    assert (await site.eve.post(f"{B}/restore", {"checkpoint": "then"})).status == 403
    assert (await site.owner.get(f"{maps}/m")).status == 200


@pytest.mark.parametrize("user", ["ann", "eve"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", path) for path in ("/version", "/api", "/apis", "/healthz", "/openapi/v2", "/")),
        *(("GET", path) for path in ("/api/v1/namespaces", "/openapi/v3", "/livez", "/readyz")),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews"),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"),
        ("POST", "/fork"),
        ("GET", "/snapshot"),
    ],
)
async def test_nobody_makes_a_plane_by_asking_for_it(
    site: Site, user: str, method: str, path: str
) -> None:
    tenant = site.ann if user == "ann" else site.eve
    body: Any = {} if method == "POST" else None
    reply = await tenant.call(method, f"/clusters/brand-new/control-plane{path}", body)
    assert reply.status in (403, 404), reply.text
    assert await site.planes() == {"a", "b", "root"}


async def test_who_may_make_planes_makes_one_by_its_first_use(site: Site) -> None:
    await grant(site.owner, "", "eve", "maker", MAKE)
    assert (await site.eve.get("/clusters/brand-new/control-plane/version")).status == 200
    assert "brand-new" in await site.planes()


async def test_diff_shows_nothing_of_a_plane_that_the_asker_may_not_read(site: Site) -> None:
    for query in ("from=plane:b", "from=plane:b&to=plane:a", "from=1&to=plane:b"):
        reply = await site.ann.get(f"{A}/diff?{query}")
        assert reply.status in (400, 403, 410), reply.text
        assert CANARY not in reply.text
    as_master = {"impersonate_user": "x", "impersonate_group": "system:masters"}
    reply = await site.ann.get(f"{A}/diff?from=plane:b", **as_master)
    assert reply.status == 403
    assert CANARY not in reply.text


async def test_rights_of_the_root_plane_to_impersonate_copy_nothing_elsewhere(site: Site) -> None:
    everyone = {"apiGroups": [""], "resources": ["users", "groups"], "verbs": ["impersonate"]}
    await grant(site.owner, "", "eve", "actor", MAKE, FLEET_RIGHTS, everyone)
    await grant(site.owner, "", "ben", "maker", MAKE, FLEET_RIGHTS)
    for headers in (
        {"impersonate_user": "ben"},
        {"impersonate_user": "ben", "impersonate_group": "system:masters"},
    ):
        wanted = fleet(f"f{len(headers)}", fromPlane="b", objects=[bound_object("eve")])
        assert (await site.eve.post(FLEETS, wanted, **headers)).status == 201
        [member] = await members(site, f"f{len(headers)}")
        assert member["phase"] == "Failed", member

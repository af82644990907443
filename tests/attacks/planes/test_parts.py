"""A part of the process acts on its own plane only, whatever it was talked into."""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate.cluster.controllers.registry import CONTROLLERS
from kvestigate.cluster.plane.model.user import MASTERS, Insider
from kvestigate.cluster.workforce.identities import (
    KUBELETS,
    MANAGER,
    METRICS,
    SCHEDULER,
    SERVER,
    Identity,
    controller,
    kubelet,
)
from kvestigate.cluster.workforce.signers import SIGNER
from kvestigate.http.message import Headers, Request, Response
from tests.attacks.planes.conftest import RBAC, A, B, Site, binding

REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
SECRET = "/api/v1/namespaces/default/secrets/top"
PARTS: dict[str, Identity] = {
    part.user.name: part
    for part in (
        SERVER,
        MANAGER,
        SCHEDULER,
        KUBELETS,
        METRICS,
        kubelet("node-1"),
        *map(controller, (*CONTROLLERS, SIGNER, "root-ca-certificate-publisher-controller")),
    )
}
READERS = {"system:kube-controller-manager", "system:apiserver"} | {
    f"system:serviceaccount:kube-system:{name}"
    for name in ("generic-garbage-collector", "resourcequota-controller", "namespace-controller")
}
"""Kubernetes lets these read every resource of their plane."""


async def ask(
    site: Site, part: Identity, method: str, path: str, body: Any = None, **headers: str
) -> Response:
    """What a part of plane a is answered."""
    fields = {"content-type": "application/json", **headers}
    sent = Headers((name.replace("_", "-"), value) for name, value in fields.items())
    content = b"" if body is None else msgspec.json.encode(body)
    answer = await site.started.act(
        Insider("a", part.user), Request(method, path, headers=sent, body=content)
    )
    assert isinstance(answer, Response)
    return answer


async def test_the_plane_sees_the_part_by_name(site: Site) -> None:
    for part in PARTS.values():
        await _is_seen(site, part)


async def _is_seen(site: Site, part: Identity) -> None:
    answer = await ask(site, part, "POST", f"{A}{REVIEW}", {})
    assert answer.status == 201
    assert isinstance(answer.body, bytes)
    user = msgspec.json.decode(answer.body)["status"]["userInfo"]
    assert user["username"] == part.user.name
    assert (MASTERS in user["groups"]) == (part is SERVER)


async def test_no_part_reaches_another_plane(site: Site) -> None:
    for part in PARTS.values():
        await _stays(site, part)


async def _stays(site: Site, part: Identity) -> None:
    for plane in (B, "", "/clusters/root/control-plane", "/clusters/new/control-plane"):
        for method, path, body in (
            ("GET", SECRET, None),
            ("GET", "/api/v1/secrets", None),
            ("POST", REVIEW, {}),
            ("POST", f"{RBAC}/clusterrolebindings", binding("system:kube-scheduler", "x")),
            ("DELETE", "/api/v1/namespaces/default", None),
            ("POST", "/fork", {"id": "copy"}),
        ):
            answer = await ask(site, part, method, f"{plane}{path}", body)
            assert answer.status in (401, 404), (plane, path, answer.status)
    assert (await ask(site, part, "POST", "/clusters", {"id": "mine"})).status == 401
    assert (await ask(site, part, "GET", "/clusters")).status == 401
    assert await site.planes() == {"root", "a", "b"}


async def test_no_part_but_the_server_becomes_somebody_else(site: Site) -> None:
    for part in PARTS.values():
        await _stays_itself(site, part)


async def _stays_itself(site: Site, part: Identity) -> None:
    if part is SERVER:
        return
    escalations: tuple[tuple[str, str, Any, dict[str, str]], ...] = (
        ("POST", f"{RBAC}/clusterrolebindings", binding(part.user.name, "x"), {}),
        ("POST", REVIEW, {}, {"impersonate_user": "ann"}),
        ("POST", REVIEW, {}, {"impersonate_user": "x", "impersonate_group": MASTERS}),
        ("POST", "/restore", {"resourceVersion": "1"}, {}),
        ("POST", "/fork", {"id": "copy"}, {}),
    )
    for method, path, body, headers in escalations:
        answer = await ask(site, part, method, f"{A}{path}", body, **headers)
        assert answer.status in (401, 403), (path, headers, answer.status)


async def test_secrets_are_for_those_who_need_them(site: Site) -> None:
    for part in PARTS.values():
        await _reads_secrets_by_right(site, part)


async def _reads_secrets_by_right(site: Site, part: Identity) -> None:
    answer = await ask(site, part, "GET", f"{A}/api/v1/secrets")
    assert (answer.status == 200) == (part.user.name in READERS), answer.status

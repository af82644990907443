"""Tokens of service accounts: asked for, used, and dead with what they name."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from kvestigate.cluster.plane.access.authn.service_accounts import TokenIssuer
from kvestigate.cluster.plane.store.model import Item
from kvestigate.errors import Unauthorized
from tests.cluster.plane.conftest import Api

NAMESPACE = "/api/v1/namespaces/default"
TOKENS = f"{NAMESPACE}/serviceaccounts/default/token"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ACCOUNT = Item("ns", "sa", "u-1", 1, 1, b"{}")


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def ask(api: Api, **spec: Any) -> str:
    answer = await api.post(TOKENS, {"spec": spec})
    assert answer.status == 201, answer.body
    token: str = answer.body["status"]["token"]
    return token


async def test_a_token_lets_its_account_in(guarded: Api) -> None:
    answer = await guarded.post(WHO, {}, **bearer(await ask(guarded)))

    user = answer.body["status"]["userInfo"]
    assert user["username"] == "system:serviceaccount:default:default"
    assert user["groups"] == [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ]
    assert user["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")


async def test_it_dies_with_its_account(guarded: Api) -> None:
    token = await ask(guarded)
    await guarded.delete(f"{NAMESPACE}/serviceaccounts/default")
    assert (await guarded.post(WHO, {}, **bearer(token))).status == 401

    await guarded.post(f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})
    assert (await guarded.post(WHO, {}, **bearer(token))).status == 401


async def test_it_dies_with_what_it_is_bound_to(guarded: Api) -> None:
    await guarded.post(f"{NAMESPACE}/secrets", {"metadata": {"name": "s"}})
    token = await ask(guarded, boundObjectRef={"kind": "Secret", "apiVersion": "v1", "name": "s"})
    assert (await guarded.post(WHO, {}, **bearer(token))).status == 201

    await guarded.delete(f"{NAMESPACE}/secrets/s")
    assert (await guarded.post(WHO, {}, **bearer(token))).status == 401


async def test_it_is_good_in_its_own_plane_only(guarded: Api) -> None:
    other = Api(guarded.server, "/clusters/other/control-plane")
    token = await ask(guarded)

    assert (await other.post(WHO, {}, **bearer(token))).status == 401
    assert (await other.post(WHO, {}, **bearer(await ask(other)))).status == 201


async def test_it_is_not_for_us_if_it_names_others(guarded: Api) -> None:
    token = await ask(guarded, audiences=["vault"])

    assert (await guarded.post(WHO, {}, **bearer(token))).status == 401


@pytest.mark.parametrize(
    ("now", "valid"), [(999, False), (1000, True), (1599, True), (1600, False)]
)
def test_it_has_its_time(issuer: TokenIssuer, now: int, valid: bool) -> None:
    token = issuer.issue(
        "root", ACCOUNT, audiences=[], now=1000, seconds=600, bound=[], random=Random(1)
    )
    if valid:
        assert issuer.recognise(token, "root", now).name == "system:serviceaccount:ns:sa"
    else:
        with pytest.raises(Unauthorized):
            issuer.recognise(token, "root", now)


@pytest.mark.parametrize(
    ("spec", "status", "message"),
    [
        (
            {"expirationSeconds": 599},
            422,
            "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than "
            "10 minutes",
        ),
        (
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}},
            404,
            'pods "none" not found',
        ),
    ],
)
async def test_what_cannot_be_asked_for(
    api: Api, spec: dict[str, Any], status: int, message: str
) -> None:
    answer = await api.post(TOKENS, {"spec": spec})

    assert answer.status == status
    assert answer.body["message"].endswith(message)


async def test_it_lasts_as_long_as_was_asked_for(api: Api) -> None:
    answer = await api.post(TOKENS, {"spec": {"expirationSeconds": 7200, "audiences": ["a"]}})

    spec, made = answer.body["spec"], answer.body["metadata"]["creationTimestamp"]
    assert (spec["expirationSeconds"], spec["audiences"]) == (7200, ["a"])
    ends = answer.body["status"]["expirationTimestamp"]
    lasts = datetime.fromisoformat(ends) - datetime.fromisoformat(made)
    assert lasts == timedelta(seconds=7200)


@pytest.mark.parametrize(
    ("seconds", "audiences", "kept"),
    [(3607, [], True), (3608, [], False), (3607, ["vault"], False)],
)
async def test_the_token_that_every_pod_has_may_be_kept_for_a_year(
    guarded: Api, issuer: TokenIssuer, seconds: int, audiences: list[str], kept: bool
) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await guarded.post(f"{NAMESPACE}/pods", pod)
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    spec = {"expirationSeconds": seconds, "boundObjectRef": reference, "audiences": audiences}

    answer = await guarded.post(TOKENS, {"spec": spec})

    ends = datetime.fromisoformat(answer.body["status"]["expirationTimestamp"])
    made = datetime.fromisoformat(answer.body["metadata"]["creationTimestamp"])
    assert ends - made == timedelta(seconds=seconds)
    claims = issuer.key.verify(answer.body["status"]["token"])
    assert claims["exp"] - claims["iat"] == (365 * 24 * 3600 if kept else seconds)
    warned = claims["iat"] + seconds if kept else None
    assert claims["kubernetes.io"].get("warnafter") == warned

"""Manifests become objects, on every kind of cluster, and nothing else changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from kvestigate.client.access import Access
from kvestigate.client.auth.static import Anonymous
from kvestigate.client.endpoint import parse_endpoint
from kvestigate.errors import InputError
from kvestigate.http.message import Request, Response
from kvestigate.http.server import serve
from kvestigate.manifests.deploy import DeployOptions, deploy
from kvestigate.manifests.model import Change, Deployment, FieldConflict, Outcome, Source
from tests.contexts import acting, planning
from tests.upstream.judge import Judge

Json = dict[str, Any]


def options(*bodies: Json, **more: Any) -> DeployOptions:
    return DeployOptions((Source("x.json", "\n".join(map(json.dumps, bodies))),), **more)


def config(name: str = "a", namespace: str = "", **data: str) -> Json:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def outcomes(found: Deployment) -> list[tuple[str, str, Outcome]]:
    return [(it.kind, it.name, it.outcome) for it in found.objects]


async def test_created_changed_unchanged(access: Access, judge: Judge, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/a"
    seen = await deploy(planning(access), options(config(k="1")))
    assert (seen.applied, outcomes(seen)) == (False, [("ConfigMap", "a", Outcome.CREATED)])
    assert not judge.answers(path)

    done = await deploy(acting(access), options(config(k="1")))
    assert (done.applied, outcomes(done)) == (True, [("ConfigMap", "a", Outcome.CREATED)])
    assert done.objects[0].namespace == namespace

    seen = await deploy(planning(access), options(config(k="2")))
    assert seen.objects[0].changes == (Change("data.k", "1", "2"),)
    assert judge.get(path)["data"] == {"k": "1"}

    done = await deploy(acting(access), options(config(k="2")))
    assert outcomes(done) == [("ConfigMap", "a", Outcome.CHANGED)]
    assert judge.get(path)["data"] == {"k": "2"}
    version = judge.get(path)["metadata"]["resourceVersion"]

    done = await deploy(acting(access), options(config(k="2")))
    assert outcomes(done) == [("ConfigMap", "a", Outcome.UNCHANGED)]
    assert judge.get(path)["metadata"]["resourceVersion"] == version


async def test_a_type_and_a_namespace_come_before_what_needs_them(
    access: Access, judge: Judge, namespace: str
) -> None:
    group = f"{namespace}.example.org"
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gears.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "gears", "singular": "gear", "kind": "Gear"},
            "versions": [version],
        },
    }
    new = f"{namespace}-new"
    gear = {
        "apiVersion": f"{group}/v1",
        "kind": "Gear",
        "metadata": {"name": "g", "namespace": new},
        "spec": {"size": 3},
    }
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": new}}
    wanted = options(gear, config(namespace=new), definition, space)

    seen = await deploy(planning(access), wanted)
    kinds = ["Namespace", "CustomResourceDefinition", "ConfigMap", "Gear"]
    assert [it.kind for it in seen.objects] == kinds
    assert {it.outcome for it in seen.objects} == {Outcome.CREATED}
    assert ["does not exist yet" in it.reason for it in seen.objects] == [False, False, True, True]

    done = await deploy(acting(access), wanted)
    assert [(it.kind, it.outcome, it.reason) for it in done.objects] == [
        (kind, Outcome.CREATED, "") for kind in kinds
    ]
    found = judge.get(f"/apis/{group}/v1/namespaces/{new}/gears/g")
    assert found["spec"] == {"size": 3}

    broken = gear | {"spec": {"size": "large"}}
    seen = await deploy(acting(access), options(broken, definition))
    assert (seen.applied, seen.objects[1].outcome) == (False, Outcome.FAILED)


async def test_what_could_not_be_checked_fails_on_its_own(
    access: Access, judge: Judge, namespace: str
) -> None:
    new = f"{namespace}-new"
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": new}}
    bad = config("bad", new) | {"data": {"no spaces allowed": "x"}}
    done = await deploy(acting(access), options(bad, config("good", new), space))
    assert (done.applied, done.failed) == (True, True)
    assert outcomes(done) == [
        ("Namespace", new, Outcome.CREATED),
        ("ConfigMap", "bad", Outcome.FAILED),
        ("ConfigMap", "good", Outcome.CREATED),
    ]
    assert judge.answers(f"/api/v1/namespaces/{new}/configmaps/good")


async def test_one_that_would_fail_keeps_all_from_being_applied(
    access: Access, judge: Judge, namespace: str
) -> None:
    bad = config("b") | {"data": {"no spaces allowed": "x"}}
    done = await deploy(acting(access), options(config("a"), bad))
    assert (done.applied, done.failed) == (False, True)
    assert [it.outcome for it in done.objects] == [Outcome.CREATED, Outcome.FAILED]
    assert "no spaces allowed" in done.objects[1].reason
    assert not judge.answers(f"/api/v1/namespaces/{namespace}/configmaps/a")


async def test_a_field_of_another_manager_is_not_taken_unasked(
    access: Access, judge: Judge, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    judge.post(f"{path}?fieldManager=somebody", config(k="theirs"))
    refused = await deploy(acting(access), options(config(k="ours")))
    assert refused.objects[0].conflicts == (FieldConflict("data.k", "somebody"),)
    assert refused.objects[0].outcome is Outcome.CONFLICT
    assert judge.get(f"{path}/a")["data"] == {"k": "theirs"}

    taken = await deploy(acting(access), options(config(k="ours"), force_conflicts=True))
    assert taken.objects[0].changes == (Change("data.k", "theirs", "ours"),)
    assert judge.get(f"{path}/a")["data"] == {"k": "ours"}


async def test_values_of_a_secret_are_never_told(access: Access) -> None:
    def secret(value: str) -> Json:
        metadata = {"name": "s"}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "stringData": {"p": value},
        }

    await deploy(acting(access), options(secret("hunter2")))
    seen = await deploy(planning(access), options(secret("hunter3")))
    assert seen.objects[0].changes == (Change("data.p", "(7 bytes)", "(7 bytes), other content"),)
    assert "hunter" not in repr(seen)


@pytest.mark.parametrize(
    ("api_version", "kind", "hint"),
    [
        ("apps/v1beta1", "Deployment", "Deployment is in apps/v1"),
        ("apps/v1", "Deploymint", "did you mean kind Deployment?"),
        ("example.org/v9", "Xylophone", "deploy the CustomResourceDefinition first"),
    ],
)
async def test_a_kind_that_is_not_there(
    access: Access, api_version: str, kind: str, hint: str
) -> None:
    body = config() | {"apiVersion": api_version, "kind": kind}
    seen = await deploy(planning(access), options(body))
    assert seen.objects[0].outcome is Outcome.FAILED
    assert hint in seen.objects[0].reason


async def test_the_namespace_asked_for_must_be_that_of_the_manifest(access: Access) -> None:
    with pytest.raises(InputError, match="has namespace 'web', but --namespace is 'shop'"):
        await deploy(planning(access), options(config(namespace="web"), namespace="shop"))


async def test_without_a_server_the_first_failure_speaks_for_all(access: Access) -> None:
    nowhere = replace(access, server=parse_endpoint("https://127.0.0.1:9"))
    seen = await deploy(planning(nowhere), options(*(config(f"c{number}") for number in range(20))))
    found = [it.outcome for it in seen.objects]
    assert found[0] is Outcome.FAILED
    assert found[-1] is Outcome.NOT_TRIED


async def test_what_others_write_meanwhile_is_not_our_change() -> None:
    """A server on which a controller writes between the look and the preview, once."""
    versions = iter(["1", "2"])
    asked: list[str] = []

    async def handle(request: Request) -> Response:
        asked.append(request.method)
        version = next(versions, "2") if request.method == "GET" else "2"
        notes = {"revision": version}
        metadata = {"name": "a", "namespace": "default", "resourceVersion": version}
        answer = config(k="1") | {"metadata": metadata | {"annotations": notes}}
        headers = [("content-type", "application/json")]
        return Response(200, headers, json.dumps(answer).encode())

    server = await serve(handle)
    endpoint = parse_endpoint(f"http://127.0.0.1:{server.address[1]}")
    try:
        nobody = Access(endpoint, Anonymous("nobody"))
        seen = await deploy(planning(nobody), options(config(k="1")))
    finally:
        await server.close(grace=0)
    assert outcomes(seen) == [("ConfigMap", "a", Outcome.UNCHANGED)]
    assert asked == ["GET", "PATCH"] * 2

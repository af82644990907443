"""Admission webhooks: a plane asks a small HTTPS server, in the words of kube-apiserver."""

from __future__ import annotations

import asyncio

import pytest

from tests.cluster.plane.admission.policies.conftest import GROUP, register
from tests.cluster.plane.admission.policies.judge import NAME, Judge, Object, patch
from tests.cluster.plane.conftest import Api

MAPS = "/api/v1/namespaces/default/configmaps"
DENIED = f'admission webhook "{NAME}" denied the request'
FAILED = f'Internal error occurred: failed calling webhook "{NAME}": '


@pytest.fixture
def api(hooked: Api) -> Api:
    return hooked


def config(**data: str) -> Object:
    return {"metadata": {"name": "a"}, "data": data}


@pytest.mark.parametrize("kind", ["mutating", "validating"])
@pytest.mark.parametrize(
    ("status", "code", "reason", "told"),
    [
        (None, 400, None, f"{DENIED} without explanation"),
        ({"message": "no", "code": 409, "reason": "Conflict"}, 409, "Conflict", f"{DENIED}: no"),
        ({"message": "no", "code": 418}, 418, None, f"{DENIED}: no"),
        ({"message": "no", "code": 200}, 400, None, f"{DENIED}: no"),
        ({"reason": "NotFound"}, 400, "NotFound", f"{DENIED}: NotFound"),
    ],
)
async def test_a_refusal_is_told_in_its_own_words(
    api: Api,
    judge: Judge,
    kind: str,
    status: Object | None,
    code: int,
    reason: str | None,
    told: str,
) -> None:
    await register(api, kind, judge.hook(failurePolicy="Ignore"))
    judge.response = {"allowed": False} if status is None else {"allowed": False, "status": status}
    answer = await api.post(MAPS, config())
    assert (answer.status, answer.body.get("reason")) == (code, reason)
    assert answer.body["message"] == told


async def test_reviews_tell_what_is_written_and_by_whom(api: Api, judge: Judge) -> None:
    await register(api, "validating", judge.hook(timeoutSeconds=7))
    await api.post(MAPS, config(a="1"))
    await api.patch(f"{MAPS}/a?dryRun=All", {"data": {"a": "2"}})
    await api.delete(f"{MAPS}/a", {"propagationPolicy": "Background"})
    create, update, delete = judge.asked
    assert (create["path"], create["query"]) == ("/ask", "timeout=7s")
    assert create["object"]["kind"] == "ConfigMap"
    assert create["oldObject"] is None
    assert create["userInfo"]["username"] == "admin"
    assert create["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}
    assert update["dryRun"] is True
    assert [update[name]["data"]["a"] for name in ("object", "oldObject")] == ["2", "1"]
    assert (delete["operation"], delete["name"], delete["object"]) == ("DELETE", "a", None)
    assert delete["oldObject"]["data"] == {"a": "1"}


@pytest.mark.parametrize(
    ("review", "raw", "told"),
    [
        ({}, (500, b"oops"), 'an error on the server ("oops")'),
        ({}, (400, b'{"kind": "Status", "message": "bad one"}'), "call webhook: bad one"),
        ({}, (404, b""), "could not find the requested resource"),
        ({}, (302, b""), "the status code 302"),
        ({}, (200, b"what"), "json parse error"),
        ({"apiVersion": "admission.k8s.io/v9"}, None, "is registered for version"),
        ({"response": None}, None, "webhook response was absent"),
        ({"response": {"uid": "x", "allowed": True}}, None, 'got "x"'),
    ],
)
async def test_what_cannot_be_understood_refuses_unless_failures_are_ignored(
    api: Api, judge: Judge, review: Object, raw: tuple[int, bytes] | None, told: str
) -> None:
    judge.review, judge.raw = review, raw
    await register(api, "validating", judge.hook())
    answer = await api.post(MAPS, config())
    assert (answer.status, answer.body["reason"]) == (500, "InternalError")
    assert answer.body["message"].startswith(FAILED)
    assert told in answer.body["message"]
    lenient = [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]
    path = f"{GROUP}/validatingwebhookconfigurations/c"
    assert (await api.patch(path, lenient, "application/json-patch+json")).status == 200
    assert (await api.post(MAPS, config())).status == 201


async def test_one_that_takes_too_long_is_not_waited_for(api: Api, judge: Judge) -> None:
    judge.late = asyncio.Event()
    await register(api, "validating", judge.hook(timeoutSeconds=1))
    answer = await api.post(MAPS, config())
    judge.late.set()
    url = f"https://127.0.0.1:{judge.port}/ask?timeout=1s"
    assert answer.body["message"] == (
        f'{FAILED}failed to call webhook: Post "{url}": context deadline exceeded'
    )


@pytest.mark.parametrize(
    ("client", "told"),
    [
        ({"url": "https://127.0.0.1:1/x"}, "dial tcp 127.0.0.1:1: connect: connection refused"),
        ({"service": {"name": "s", "namespace": "default"}}, 'service "s" not found'),
        ({"service": {"name": "kubernetes", "namespace": "default"}}, "no endpoints available"),
        (
            {"service": {"name": "kubernetes", "namespace": "default", "port": 1}},
            "no service port 1",
        ),
    ],
)
async def test_one_that_cannot_be_reached_refuses(
    api: Api, judge: Judge, client: Object, told: str
) -> None:
    await register(api, "validating", judge.hook(clientConfig=client))
    answer = await api.post(MAPS, config())
    assert answer.status == 500
    assert told in answer.body["message"]


async def test_one_that_nobody_vouches_for_is_not_asked(api: Api, judge: Judge) -> None:
    url = f"https://127.0.0.1:{judge.port}/ask"
    await register(api, "validating", judge.hook(clientConfig={"url": url}))
    answer = await api.post(MAPS, config())
    assert answer.body["message"].endswith("x509: certificate signed by unknown authority")
    assert not judge.asked


async def test_warnings_are_passed_on(api: Api, judge: Judge) -> None:
    judge.response = {"allowed": True, "warnings": ["take care"]}
    await register(api, "validating", judge.hook())
    answer = await api.post(MAPS, config())
    assert (answer.status, answer.headers.get("warning")) == (201, '299 - "take care"')


async def test_patches_change_what_is_stored_and_then_judged(api: Api, judge: Judge) -> None:
    judge.response = patch(
        {"op": "add", "path": "/data/added", "value": "yes"},
        {"op": "add", "path": "/unknown", "value": 1},
    )
    await register(api, "mutating", judge.hook())
    answer = await api.post(MAPS, config(own="x"))
    assert answer.body["data"] == {"own": "x", "added": "yes"}
    assert "unknown" not in answer.body
    owned = answer.body["metadata"]["managedFields"][0]["fieldsV1"]["f:data"]
    assert owned == {".": {}, "f:own": {}}
    judge.response = patch({"op": "replace", "path": "/metadata/name", "value": "A_"})
    assert (await api.post(MAPS, config())).status == 422


async def test_a_patched_spec_is_a_new_generation(api: Api, judge: Judge) -> None:
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"]}
    await register(api, "mutating", judge.hook(rules=[{**rule, "resources": ["deployments"]}]))
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [_CONTAINER]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    assert (await api.post(path, {"metadata": {"name": "d"}, "spec": spec})).status == 201
    judge.response = patch({"op": "replace", "path": "/spec/replicas", "value": 5})
    changed = await api.patch(f"{path}/d", {"metadata": {"labels": {"x": "y"}}})
    assert changed.body["spec"]["replicas"] == 5
    assert changed.body["metadata"]["generation"] == 2


_CONTAINER = {"name": "c", "image": "i"}


@pytest.mark.parametrize(
    ("response", "told"),
    [
        ({"allowed": True, "patch": "W3t9XQ=="}, "response.patch but not response.patchType"),
        ({"allowed": True, "patch": "e30x", "patchType": "JSONPatch"}, "undecodable patch"),
        (patch({"op": "remove", "path": "/nothing"}), "nothing to remove at '/nothing'"),
        (patch({"op": "add", "path": "/data/a", "value": 5}), "json: cannot unmarshal number"),
    ],
)
async def test_patches_that_cannot_be_applied_refuse(
    api: Api, judge: Judge, response: Object, told: str
) -> None:
    judge.response = response
    await register(api, "mutating", judge.hook())
    answer = await api.post(MAPS, config(own="x"))
    assert answer.status == 500
    assert told in answer.body["message"]


async def test_a_judge_may_not_patch_and_a_deletion_not_be_patched(api: Api, judge: Judge) -> None:
    await api.post(MAPS, config())
    judge.response = patch({"op": "add", "path": "/data", "value": {}})
    await register(api, "validating", judge.hook())
    refused = await api.patch(f"{MAPS}/a", {"data": {"x": "y"}})
    assert refused.body["message"].endswith("validating webhook may not return response.patch")
    await api.delete(f"{GROUP}/validatingwebhookconfigurations/c")
    await register(api, "mutating", judge.hook())
    refused = await api.delete(f"{MAPS}/a")
    assert "attempted to modify the object" in refused.body["message"]


async def test_who_asks_for_it_is_asked_again_about_what_others_changed(
    api: Api, judge: Judge
) -> None:
    def respond(request: Object) -> Object:
        data = request["object"].get("data") or {}
        grown = {"op": "add", "path": f"/data/n{len(data)}", "value": ""}
        return patch(grown) if len(data) < 3 else {"allowed": True}

    judge.respond = respond
    again = judge.hook(name="one.example.com", reinvocationPolicy="IfNeeded")
    await register(api, "mutating", again, judge.hook(name="two.example.com"))
    answer = await api.post(MAPS, config(own="x"))
    assert sorted(answer.body["data"]) == ["n1", "n2", "own"]
    assert len(judge.asked) == 3


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({}, 1),
        ({"objectSelector": {"matchLabels": {"a": "c"}}}, 0),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "x"}}}, 0),
        ({"matchConditions": [{"name": "c", "expression": "object.data.own == 'y'"}]}, 0),
        ({"matchConditions": [{"name": "c", "expression": "object.data.own == 'x'"}]}, 1),
        ({"rules": []}, 0),
    ],
)
async def test_only_the_writes_that_it_is_about_are_told(
    api: Api, judge: Judge, fields: Object, asked: int
) -> None:
    await register(api, "validating", judge.hook(**fields))
    assert (await api.post(MAPS, config(own="x"))).status == 201
    assert len(judge.asked) == asked


async def test_a_condition_without_a_value_refuses(api: Api, judge: Judge) -> None:
    unclear = [{"name": "c", "expression": "object.data.none == 'y'"}]
    await register(api, "validating", judge.hook(matchConditions=unclear))
    answer = await api.post(MAPS, config(own="x"))
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert answer.body["message"].endswith("resulted in error: no such key: none")


async def test_configurations_themselves_are_never_told(api: Api, judge: Judge) -> None:
    judge.response = {"allowed": False}
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"]}
    await register(api, "validating", judge.hook(rules=[{**everything, "resources": ["*/*"]}]))
    assert (await api.post(MAPS, config())).status == 400
    removed = await api.delete(f"{GROUP}/validatingwebhookconfigurations/c")
    assert removed.status == 200
    assert (await api.post(MAPS, config())).status == 201


async def test_a_port_is_handed_out_once_however_long_judges_take(api: Api, judge: Judge) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"]}
    await register(api, "validating", judge.hook(rules=[{**rule, "resources": ["services"]}]))
    both, judge.late = asyncio.Event(), asyncio.Event()
    judge.arrived = lambda: both.set() if len(judge.asked) == 2 else None
    path = "/api/v1/namespaces/default/services"
    port = {"port": 80, "nodePort": 30080}
    async with asyncio.TaskGroup() as group:
        posts = [
            group.create_task(
                api.post(
                    path,
                    {"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [port]}},
                )
            )
            for name in ("a", "b")
        ]
        await both.wait()
        judge.late.set()
    assert sorted(post.result().status for post in posts) == [201, 422]
    refused = next(post.result() for post in posts if post.result().status == 422)
    assert "provided port is already allocated" in refused.body["message"]

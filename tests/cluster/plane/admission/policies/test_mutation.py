"""Policies that change writes, beyond what the scripts that the real server answered cover.

What is told of custom resources was asked of kube-apiserver 1.36 by hand: it learns of their
schemas a minute late, too late for a script.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.plane.admission.policies.conftest import (
    GROUP,
    change,
    configure,
    patching,
    register,
)
from tests.cluster.plane.admission.policies.judge import Judge, Object, patch
from tests.cluster.plane.conftest import Api
from tests.cluster.plane.kinds.custom.conftest import DEFINITIONS, PROBES, definition, probe

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
ORDER = (
    "Object{{data: {{'order': (has(object.data.order) ? string(object.data.order) : '') + '{}'}}}}"
)
TEXT = {"type": "string"}
SPEC = {
    "type": "object",
    "properties": {
        "size": {"type": "integer"},
        "color": {"type": "string", "default": "red"},
        "items": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": TEXT, "v": TEXT},
            },
        },
        "plain": {"type": "array", "items": TEXT},
        "nested": {"type": "object", "properties": {"a": {**TEXT, "default": "x"}, "b": TEXT}},
    },
}
GIVEN = {"color": "red", "items": [{"name": "a", "v": "1"}]}


def config(**data: str) -> Object:
    return {"metadata": {"name": "a"}, "data": data}


async def refine(api: Api, mutation: Object) -> Any:
    """A custom resource, changed by a policy."""
    made = await api.post(DEFINITIONS, definition(SPEC, subresources={"status": {}}))
    assert made.status == 201, made.body
    await change(api, mutation, group="example.com", resources=("probes",))
    return await api.post(PROBES, probe({"items": [{"name": "a", "v": "1"}]}))


@pytest.mark.parametrize(
    ("mutation", "made"),
    [
        (
            configure("Object{spec: Object.spec{size: 3, items: [Object.spec.items{name: 'b'}]}}"),
            {"color": "red", "items": [{"name": "a", "v": "1"}, {"name": "b"}], "size": 3},
        ),
        (
            configure("Object{spec: Object.spec{items: [Object.spec.items{name: 'a', v: '2'}]}}"),
            {"color": "red", "items": [{"name": "a", "v": "2"}]},
        ),
        (
            configure("Object{spec: Object.spec{nested: Object.spec.nested{b: 'y'}}}"),
            {**GIVEN, "nested": {"a": "x", "b": "y"}},
        ),
        (configure("Object{spec: Object.spec{size: 5.0}}"), {**GIVEN, "size": 5}),
        (patching("[JSONPatch{op: 'add', path: '/spec/unknown', value: 'x'}]"), GIVEN),
        (
            patching("[JSONPatch{op: 'add', path: '/spec/nested', value: {'b': 'y'}}]"),
            {**GIVEN, "nested": {"a": "x", "b": "y"}},
        ),
        (patching("[JSONPatch{op: 'remove', path: '/spec'}]"), None),
    ],
)
async def test_custom_resources_are_changed_by_their_schema(
    api: Api, mutation: Object, made: Object | None
) -> None:
    answer = await refine(api, mutation)
    assert answer.status == 201, answer.body
    assert answer.body.get("spec") == made


@pytest.mark.parametrize(
    ("mutation", "status", "told"),
    [
        (
            configure("Object{spec: Object.spec{size: 'x'}}"),
            403,
            ".spec.size: expected numeric (int or float), got string",
        ),
        (
            configure("Object{spec: Object.spec{unknown: 'x'}}"),
            403,
            ".spec.unknown: field not declared in schema",
        ),
        (
            configure("Object{spec: Object.spec{plain: ['a']}}"),
            403,
            "may not mutate atomic arrays, maps or structs: .spec.plain",
        ),
        (
            patching("[JSONPatch{op: 'add', path: '/spec/size', value: 'x'}]"),
            422,
            'spec.size in body must be of type integer: "string"',
        ),
    ],
)
async def test_what_does_not_fit_the_schema_is_refused(
    api: Api, mutation: Object, status: int, told: str
) -> None:
    answer = await refine(api, mutation)
    assert answer.status == status
    assert told in answer.body["message"]


async def test_policies_are_asked_by_name(api: Api) -> None:
    for name in ("b", "c", "a"):
        await change(api, configure(ORDER.format(name)), name=name)
    assert (await api.post(MAPS, config(order=""))).body["data"] == {"order": "abc"}


async def test_a_policy_that_is_not_bound_any_more_does_nothing(api: Api) -> None:
    await change(api, configure("Object{data: {'x': 'y'}}"))
    await api.delete(f"{GROUP}/mutatingadmissionpolicybindings/p")
    assert (await api.post(MAPS, config(a="b"))).body["data"] == {"a": "b"}


async def test_versions_are_converted_to_the_one_a_rule_names(api: Api) -> None:
    rule = {"apiGroups": ["autoscaling"], "apiVersions": ["v2"], "operations": ["CREATE"]}
    match = {"resourceRules": [{**rule, "resources": ["horizontalpodautoscalers"]}]}
    said = (
        "Object{metadata: Object.metadata{labels: {'v': string(object.apiVersion).split('/')[1]}}}"
    )
    await change(api, configure(said), matchConstraints=match)
    target = {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}
    spec = {"maxReplicas": 3, "scaleTargetRef": target, "targetCPUUtilizationPercentage": 50}
    path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
    made = await api.post(path, {"metadata": {"name": "a"}, "spec": spec})
    assert made.body["metadata"]["labels"] == {"v": "v2"}
    assert made.body["spec"]["targetCPUUtilizationPercentage"] == 50


async def test_what_a_policy_adds_is_seen_by_the_rules_before_it(api: Api) -> None:
    limit = {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m"}}
    path = "/api/v1/namespaces/default/limitranges"
    await api.post(path, {"metadata": {"name": "l"}, "spec": {"limits": [limit]}})
    side = "Object.spec.containers{name: 'side', image: 'x'}"
    await change(
        api, configure(f"Object{{spec: Object.spec{{containers: [{side}]}}}}"), resources=("pods",)
    )
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    made = await api.post(PODS, pod)
    assert [each["resources"] for each in made.body["spec"]["containers"]] == [
        {"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}}
    ] * 2


async def test_webhooks_come_after_policies_and_make_them_ask_again(
    hooked: Api, judge: Judge
) -> None:
    await change(hooked, configure(ORDER.format("p")), reinvocationPolicy="IfNeeded")
    await change(hooked, configure(ORDER.format("q")), name="q")
    await register(hooked, "mutating", judge.hook(reinvocationPolicy="IfNeeded"))
    judge.respond = lambda request: patch(
        {"op": "add", "path": "/data/order", "value": request["object"]["data"]["order"] + "w"}
    )
    made = await hooked.post(MAPS, config(order=""))
    assert made.body["data"] == {"order": "pqwpw"}
    assert [each["object"]["data"]["order"] for each in judge.asked] == ["pq", "pqwp"]


async def test_webhooks_that_change_a_new_object_do_not_see_what_the_server_sets(
    hooked: Api, judge: Judge
) -> None:
    await register(hooked, "mutating", judge.hook())
    judge.response = patch({"op": "add", "path": "/metadata/uid", "value": "mine"})
    made = await hooked.post(MAPS, {"metadata": {"generateName": "a-"}})
    assert judge.asked[0]["object"]["metadata"].keys() == {
        "generateName",
        "managedFields",
        "namespace",
    }
    assert made.body["metadata"]["uid"] != "mine"
    assert made.body["metadata"]["name"].startswith("a-")


async def test_owners_named_twice_are_merged(api: Api) -> None:
    owner = "{'apiVersion': 'v1', 'kind': 'Node', 'name': 'n', 'uid': '1'}"
    added = (
        f"[JSONPatch{{op: 'add', path: '/metadata/ownerReferences', value: [{owner}, {owner}]}}]"
    )
    await change(api, patching(added))
    made = await api.post(MAPS, config())
    assert len(made.body["metadata"]["ownerReferences"]) == 1
    assert "metadata.ownerReferences contains duplicate entries" in made.headers.get("warning")

"""Admission policies beyond what the scripts that the real server answered cover."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.plane.admission.policies.conftest import GROUP, Enact
from tests.cluster.plane.conftest import Api

MAPS = "/api/v1/namespaces/default/configmaps"
SCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"


def config(**data: str) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "data": data}


@pytest.mark.parametrize(
    ("expression", "status"),
    [
        ("namespaceObject.metadata.creationTimestamp > timestamp('2000-01-01T00:00:00Z')", 201),
        ("namespaceObject.metadata.creationTimestamp > timestamp('2999-01-01T00:00:00Z')", 422),
        ("authorizer.group('').resource('pods').check('get').reason() == ''", 201),
        ("!authorizer.path('/x').check('get').errored()", 201),
        ("object.data.all(key, object.data[key] == 'x')", 201),
        ("has(object.data) && object.?data.?missing.orValue('none') == 'none'", 201),
        ("authorizer.path('').check('get').allowed()", 422),
    ],
)
async def test_expressions_hold_or_refuse(
    api: Api, enact: Enact, expression: str, status: int
) -> None:
    await enact(validations=[{"expression": expression}])
    assert (await api.post(MAPS, config(key="x"))).status == status


@pytest.mark.parametrize(
    ("policy", "status"), [("Equivalent", 422), ("Exact", 201)], ids=["equivalent", "exact"]
)
async def test_other_versions_are_converted_to_the_one_a_rule_names(
    api: Api, enact: Enact, policy: str, status: int
) -> None:
    rule = {"apiGroups": ["autoscaling"], "apiVersions": ["v2"], "operations": ["CREATE"]}
    version = "string(object.apiVersion)"
    said = {"expression": "!has(object.spec.metrics)", "messageExpression": version}
    await enact(rules=[{**rule, "resources": ["*"]}], validations=[said])
    match = {"spec": {"matchConstraints": {"matchPolicy": policy}}}
    assert (await api.patch(f"{GROUP}/validatingadmissionpolicies/p", match)).status == 200
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec = {"scaleTargetRef": target, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}
    answer = await api.post(SCALERS.format("v1"), {"metadata": {"name": "a"}, "spec": spec})
    assert answer.status == status
    if status == 422:
        assert answer.body["message"].endswith("autoscaling/v2")


async def test_a_policy_that_is_gone_or_changed_counts_no_longer(api: Api, enact: Enact) -> None:
    await enact(validations=[{"expression": "false", "message": "no"}])
    assert (await api.post(MAPS, config())).status == 422
    path = f"{GROUP}/validatingadmissionpolicies/p"
    change = {"spec": {"validations": [{"expression": "true"}]}}
    assert (await api.patch(path, change)).status == 200
    assert (await api.post(MAPS, config())).status == 201
    await api.patch(path, {"spec": {"validations": [{"expression": "false"}]}})
    assert (await api.delete(f"{MAPS}/a")).status == 422
    await api.delete(path)
    assert (await api.delete(f"{MAPS}/a")).status == 200


async def test_namespaces_are_selected_by_their_own_labels(api: Api, enact: Enact) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    scope = {"namespaceSelector": {"matchLabels": {"guarded": "yes"}}}
    await enact(
        rules=[{**rule, "resources": ["namespaces"], "scope": "Cluster"}],
        binding={"matchResources": scope},
        validations=[{"expression": "namespaceObject != null", "message": "is no namespaced one"}],
    )
    plain, guarded = ({"name": "a"}, {"name": "b", "labels": {"guarded": "yes"}})
    assert (await api.post("/api/v1/namespaces", {"metadata": plain})).status == 201
    refused = await api.post("/api/v1/namespaces", {"metadata": guarded})
    assert refused.body["message"].endswith("is no namespaced one")


@pytest.mark.parametrize(
    ("kind", "reference", "why"),
    [
        ({"apiVersion": "x.io/v1", "kind": "Nope"}, {"name": "a"}, "failed to find resource"),
        ({"apiVersion": "v1", "kind": "Node"}, {"name": "a", "namespace": "b"}, "must not be prov"),
        ({"apiVersion": "v1", "kind": "Node"}, {"name": "a"}, "no params found"),
    ],
)
async def test_parameters_that_cannot_be_had_refuse(
    api: Api, enact: Enact, kind: dict[str, str], reference: dict[str, str], why: str
) -> None:
    await enact(
        paramKind=kind,
        binding={"paramRef": {**reference, "parameterNotFoundAction": "Deny"}},
        validations=[{"expression": "params != null"}],
    )
    refused = await api.post(MAPS, config())
    assert refused.status == 422
    assert why in refused.body["message"]


async def test_an_expression_that_takes_too_long_refuses(api: Api, enact: Enact) -> None:
    numbers = "[" + ",".join("1" * 1 for _ in range(100)) + "]"
    nested = "true"
    for name in ("a", "b", "c", "d"):
        nested = f"{numbers}.all({name}, {nested})"
    await enact(validations=[{"expression": nested}])
    refused = await api.post(MAPS, config())
    assert "running out of cost budget" in refused.body["message"]

"""A namespace does not take more than it may."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.cluster.plane.admission.rules.conftest import NAMESPACE, made, pod, refusal
from tests.cluster.plane.conftest import Api

PODS = f"{NAMESPACE}/pods"
QUOTA = f"{NAMESPACE}/resourcequotas/q"
SMALL = {"limits": {"cpu": "500m", "memory": "1Mi"}}


async def allow(api: Api, hard: dict[str, str], **spec: Any) -> None:
    """A quota that was counted: nothing is used."""
    obj = {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}}
    await made(api, f"{NAMESPACE}/resourcequotas", obj)
    status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    assert (await api.patch(f"{QUOTA}/status", {"status": status})).status == 200


async def used(api: Api) -> Any:
    return (await api.get(QUOTA)).body["status"]["used"]


async def test_what_comes_is_counted(api: Api) -> None:
    await allow(api, {"pods": "3", "requests.cpu": "2", "limits.memory": "1Gi", "count/pods": "9"})
    await made(api, PODS, pod("a", SMALL))
    await made(api, PODS, pod("b", {"limits": {"cpu": "1", "memory": "1Mi"}}))

    assert await used(api) == {
        "pods": "2",
        "count/pods": "2",
        "requests.cpu": "1500m",
        "limits.memory": "2Mi",
    }


async def test_the_last_is_given_once(api: Api) -> None:
    await allow(api, {"pods": "1"})
    answers = await asyncio.gather(*(api.post(PODS, pod(f"p{n}")) for n in range(5)))

    assert sorted(answer.status for answer in answers) == [201, 403, 403, 403, 403]
    assert await used(api) == {"pods": "1"}


async def test_a_refused_pod_costs_nothing(api: Api) -> None:
    await allow(api, {"pods": "2"})
    invalid = pod()
    invalid["spec"]["restartPolicy"] = "Perhaps"
    assert (await api.post(PODS, invalid)).status == 422
    assert (await api.post(f"{PODS}?dryRun=All", pod())).status == 201

    assert await used(api) == {"pods": "0"}


@pytest.mark.parametrize(
    ("path", "obj", "why"),
    [
        (
            PODS,
            pod("p", {"limits": {"cpu": "3", "memory": "2Gi"}}),
            "exceeded quota: q, requested: limits.memory=2Gi,requests.cpu=3, used: "
            "limits.memory=0,requests.cpu=0, limited: limits.memory=1Gi,requests.cpu=2",
        ),
        (
            PODS,
            pod("p", {"limits": {"cpu": "1"}}, initContainers=[{"name": "i", "image": "x"}]),
            "failed quota: q: must specify limits.memory for: c,i; requests.cpu for: i",
        ),
        (
            f"{NAMESPACE}/services",
            {
                "metadata": {"name": "s"},
                "spec": {
                    "type": "NodePort",
                    "ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}],
                },
            },
            "exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=0, "
            "limited: services.nodeports=1",
        ),
        (
            f"{NAMESPACE}/configmaps",
            {"metadata": {"name": "c"}},
            "exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=0, limited: "
            "count/configmaps=0",
        ),
    ],
)
async def test_more_than_there_is(api: Api, path: str, obj: dict[str, Any], why: str) -> None:
    hard = {"requests.cpu": "2", "limits.memory": "1Gi", "pods": "5"}
    await allow(api, {**hard, "services": "1", "services.nodeports": "1", "count/configmaps": "0"})

    assert await refusal(api, path, obj) == why


async def test_nothing_comes_before_it_was_counted(api: Api) -> None:
    obj = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}
    await made(api, f"{NAMESPACE}/resourcequotas", obj)
    await api.patch(f"{QUOTA}/status", {"status": {"hard": {"pods": "1"}}})

    assert await refusal(api, PODS, pod()) == "status unknown for quota: q, resources: pods"


@pytest.mark.parametrize(
    ("scope", "counted"),
    [
        ({"scopes": ["BestEffort"]}, {"plain", "urgent"}),
        ({"scopes": ["NotBestEffort"]}, {"sized", "short"}),
        ({"scopes": ["Terminating"]}, {"short"}),
        ({"scopes": ["NotTerminating"]}, {"plain", "sized", "urgent"}),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [
                        {
                            "scopeName": "PriorityClass",
                            "operator": "In",
                            "values": ["system-node-critical"],
                        }
                    ]
                }
            },
            {"urgent"},
        ),
    ],
)
async def test_a_quota_is_about_its_scope(api: Api, scope: Any, counted: set[str]) -> None:
    await allow(api, {"pods": "9"}, **scope)
    pods = {
        "plain": pod("plain"),
        "sized": pod("sized", SMALL),
        "short": pod("short", SMALL, activeDeadlineSeconds=5),
        "urgent": pod("urgent", priorityClassName="system-node-critical"),
    }
    for name, each in pods.items():
        before = await used(api)
        await made(api, PODS, each)
        assert (await used(api) != before) is (name in counted)


async def test_a_change_costs_the_difference(api: Api) -> None:
    await allow(api, {"services.nodeports": "2"})
    spec: dict[str, Any] = {"type": "NodePort", "ports": [{"name": "a", "port": 1}]}
    await made(api, f"{NAMESPACE}/services", {"metadata": {"name": "s"}, "spec": spec})
    ports = [{"name": name, "port": n} for n, name in enumerate("abc", 1)]
    refused = await api.patch(f"{NAMESPACE}/services/s", {"spec": {"ports": ports}})
    grown = await api.patch(f"{NAMESPACE}/services/s", {"spec": {"ports": ports[:2]}})

    assert "requested: services.nodeports=2, used: services.nodeports=1" in refused.body["message"]
    assert grown.status == 200
    assert await used(api) == {"services.nodeports": "2"}

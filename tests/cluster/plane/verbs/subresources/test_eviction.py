"""pods/eviction and what PodDisruptionBudgets say to it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.cluster.plane.conftest import Api
from tests.cluster.plane.verbs.subresources.conftest import PODS, MakePod

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
WEB = {"app": "web"}
REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."


def eviction(pod: str, **options: Any) -> dict[str, Any]:
    sent: dict[str, Any] = {
        "kind": "Eviction",
        "apiVersion": "policy/v1",
        "metadata": {"name": pod},
    }
    return {**sent, "deleteOptions": options} if options else sent


async def budget(
    api: Api,
    allowed: int,
    *,
    name: str = "web",
    healthy: int = 2,
    desired: int = 2,
    observed: bool = True,
    **spec: Any,
) -> None:
    """A budget for the pods of `web`, with the status that its controller would give it."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": WEB}, **spec}
    made = await api.post(BUDGETS, {"metadata": {"name": name}, "spec": spec})
    assert made.status == 201, made.body
    generation = made.body["metadata"].get("generation", 0)
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": 2,
        "observedGeneration": generation if observed else generation - 1,
    }
    patched = await api.patch(f"{BUDGETS}/{name}/status", {"status": status})
    assert patched.status == 200, patched.body


async def leaves(api: Api, pod: str) -> bool:
    """Whether the pod is gone or on its way out."""
    found = await api.get(f"{PODS}/{pod}")
    return found.status == 404 or "deletionTimestamp" in found.body["metadata"]


@pytest.mark.parametrize("version", ["policy/v1", "policy/v1beta1"])
async def test_a_pod_without_a_budget_leaves(api: Api, make_pod: MakePod, version: str) -> None:
    await make_pod("web-1", "Running")

    evicted = await api.post(f"{PODS}/web-1/eviction", {**eviction("web-1"), "apiVersion": version})

    assert evicted.status == 201
    assert evicted.body["status"] == "Success"
    assert evicted.body["code"] == 201
    assert await leaves(api, "web-1")


async def test_an_eviction_spends_the_budget(api: Api, make_pod: MakePod) -> None:
    for name in ("web-1", "web-2"):
        await make_pod(name, "Running", labels=WEB)
    await budget(api, 1, healthy=3)

    first = await api.post(f"{PODS}/web-1/eviction", eviction("web-1"))
    second = await api.post(f"{PODS}/web-2/eviction", eviction("web-2"))

    assert (first.status, second.status) == (201, 429)
    status = (await api.get(f"{BUDGETS}/web")).body["status"]
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["web-1"]
    [condition] = status["conditions"]
    assert (condition["type"], condition["status"]) == ("DisruptionAllowed", "False")
    assert condition["reason"] == "InsufficientPods"
    assert await leaves(api, "web-1")
    assert not await leaves(api, "web-2")


async def test_a_crowd_of_evictions_never_overspends(api: Api, make_pod: MakePod) -> None:
    names = [f"web-{number}" for number in range(8)]
    for name in names:
        await make_pod(name, "Running", labels=WEB)
    await budget(api, 3, healthy=8, desired=5)

    answers = await asyncio.gather(
        *(api.post(f"{PODS}/{name}/eviction", eviction(name)) for name in names)
    )

    assert sorted(each.status for each in answers) == [201] * 3 + [429] * 5
    status = (await api.get(f"{BUDGETS}/web")).body["status"]
    assert status["disruptionsAllowed"] == 0
    assert len(status["disruptedPods"]) == 3


@pytest.mark.parametrize(
    ("given", "cause", "retry_after"),
    [
        ({}, "The disruption budget web needs 2 healthy pods and has 2 currently", ""),
        ({"healthy": 3}, "The disruption budget web does not allow evicting pods currently", ""),
        (
            {"observed": False},
            "The disruption budget web is still being processed by the server.",
            "10",
        ),
    ],
)
async def test_why_a_budget_refuses(
    api: Api, make_pod: MakePod, given: dict[str, Any], cause: str, retry_after: str
) -> None:
    await make_pod("web-1", "Running", labels=WEB)
    await budget(api, 0, **given)

    refused = await api.post(f"{PODS}/web-1/eviction", eviction("web-1"))

    assert (refused.status, refused.body["reason"]) == (429, "TooManyRequests")
    assert refused.body["message"] == REFUSED
    assert refused.body["details"]["causes"] == [{"reason": "DisruptionBudget", "message": cause}]
    assert refused.headers.get("retry-after") == retry_after
    assert not await leaves(api, "web-1")


@pytest.mark.parametrize(
    ("phase", "ready", "given", "status"),
    [
        ("Pending", False, {}, 201),
        ("Succeeded", False, {}, 201),
        ("Failed", False, {}, 201),
        ("Running", True, {}, 429),
        ("Running", False, {}, 201),
        ("Running", False, {"healthy": 1}, 429),
        ("Running", False, {"healthy": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, 201),
        ("Running", True, {"healthy": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, 429),
        ("Running", False, {"healthy": 0, "desired": 0}, 429),
    ],
)
async def test_which_pods_an_exhausted_budget_lets_go(
    api: Api, make_pod: MakePod, phase: str, ready: bool, given: dict[str, Any], status: int
) -> None:
    await make_pod("web-1", phase, ready=ready, labels=WEB)
    await budget(api, 0, **given)

    answer = await api.post(f"{PODS}/web-1/eviction", eviction("web-1"))

    assert answer.status == status
    assert await leaves(api, "web-1") == (status == 201)
    after = (await api.get(f"{BUDGETS}/web")).body["status"]
    assert "disruptedPods" not in after


async def test_a_pod_of_two_budgets_cannot_be_evicted(api: Api, make_pod: MakePod) -> None:
    await make_pod("web-1", "Running", labels=WEB)
    await budget(api, 1, name="one")
    await budget(api, 1, name="two")

    refused = await api.post(f"{PODS}/web-1/eviction", eviction("web-1"))

    assert refused.status == 500
    assert refused.body["message"] == (
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
        "support."
    )


async def test_budgets_of_other_pods_do_not_count(api: Api, make_pod: MakePod) -> None:
    await make_pod("db-1", "Running", labels={"app": "db"})
    await budget(api, 0)

    assert (await api.post(f"{PODS}/db-1/eviction", eviction("db-1"))).status == 201


async def test_an_empty_selector_guards_every_pod(api: Api, make_pod: MakePod) -> None:
    await make_pod("db-1", "Running", labels={"app": "db"})
    await budget(api, 0, name="empty", selector={})

    assert (await api.post(f"{PODS}/db-1/eviction", eviction("db-1"))).status == 429


@pytest.mark.parametrize(("query", "options"), [("?dryRun=All", {}), ("", {"dryRun": ["All"]})])
async def test_a_dry_run_spends_nothing(
    api: Api, make_pod: MakePod, query: str, options: dict[str, Any]
) -> None:
    await make_pod("web-1", "Running", labels=WEB)
    await budget(api, 1)

    tried = await api.post(f"{PODS}/web-1/eviction{query}", eviction("web-1", **options))

    assert tried.status == 201
    assert not await leaves(api, "web-1")
    assert (await api.get(f"{BUDGETS}/web")).body["status"]["disruptionsAllowed"] == 1


@pytest.mark.parametrize(
    ("precondition", "message"),
    [
        ({"uid": "other"}, "the UID in the precondition (other) does not match the UID in record"),
        (
            {"resourceVersion": "1"},
            "the ResourceVersion in the precondition (1) does not match the ResourceVersion in "
            "record",
        ),
    ],
)
async def test_preconditions_hold_before_anything_is_spent(
    api: Api, make_pod: MakePod, precondition: dict[str, str], message: str
) -> None:
    await make_pod("web-1", "Running", labels=WEB)
    await budget(api, 1)

    refused = await api.post(
        f"{PODS}/web-1/eviction", eviction("web-1", preconditions=precondition)
    )

    assert refused.status == 409
    assert message in refused.body["message"]
    assert (await api.get(f"{BUDGETS}/web")).body["status"]["disruptionsAllowed"] == 1


@pytest.mark.parametrize(
    ("pod", "sent", "status", "message"),
    [
        ("web-1", eviction("web-2"), 400, "name in URL does not match name in Eviction object"),
        ("web-1", {}, 400, "name in URL does not match name in Eviction object"),
        ("web-9", eviction("web-9"), 404, 'pods "web-9" not found'),
    ],
)
async def test_what_is_no_eviction(
    api: Api, make_pod: MakePod, pod: str, sent: Any, status: int, message: str
) -> None:
    await make_pod("web-1", "Running")

    refused = await api.post(f"{PODS}/{pod}/eviction", sent)

    assert (refused.status, refused.body["message"]) == (status, message)


async def test_nothing_is_evicted_from_a_namespace_on_its_way_out(api: Api) -> None:
    """kubectl drain looks for this cause, and then waits instead of trying again."""
    await api.post("/api/v1/namespaces", {"metadata": {"name": "old"}})
    pods = "/api/v1/namespaces/old/pods"
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await api.post("/api/v1/namespaces/old/serviceaccounts", {"metadata": {"name": "default"}})
    assert (await api.post(pods, pod)).status == 201
    await api.delete("/api/v1/namespaces/old")

    refused = await api.post(f"{pods}/p/eviction", eviction("p"))

    assert refused.status == 403
    assert refused.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"

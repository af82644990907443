"""Workloads: what the recorded answers of the real server cannot show."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.plane.conftest import Api

APPS = "/apis/apps/v1/namespaces/default"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
CONTAINERS = [{"name": "main", "image": "busybox"}]


def workload(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS}}
    selector = {"matchLabels": {"app": "web"}}
    return {
        "metadata": {"name": "web"},
        "spec": {"selector": selector, "template": template, **spec},
    }


def job(name: str = "sums", **spec: Any) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": CONTAINERS}
    return {"metadata": {"name": name}, "spec": {"template": {"spec": pod}, **spec}}


@pytest.mark.parametrize("plural", ["deployments", "replicasets", "statefulsets", "daemonsets"])
async def test_generations_count_changes_of_the_spec_only(api: Api, plural: str) -> None:
    path = f"{APPS}/{plural}/web"
    await api.post(f"{APPS}/{plural}", workload())
    steps: list[tuple[str, dict[str, Any], int]] = [
        (path, {"metadata": {"labels": {"tier": "front"}}}, 1),
        (f"{path}/status", {"status": {"observedGeneration": 1}}, 1),
        (path, {"spec": {"minReadySeconds": 5}}, 2),
        (path, {"spec": {"minReadySeconds": 5}}, 2),
    ]
    for where, change, generation in steps:
        answer = await api.patch(where, change)
        assert answer.body["metadata"]["generation"] == generation, change


@pytest.mark.parametrize("plural", ["deployments", "replicasets"])
@pytest.mark.parametrize(
    ("template", "why"),
    [
        ({"spec": {"restartPolicy": "Never"}}, "restartPolicy"),
        ({"spec": {"containers": [{"name": "main", "image": ""}]}}, "image"),
        ({"spec": {"containers": None}}, "containers"),
        ({"metadata": {"labels": {"app": "other"}}}, "does not match template"),
    ],
)
async def test_a_patch_of_the_template_is_judged_though_the_rest_is_not(
    api: Api, plural: str, template: dict[str, Any], why: str
) -> None:
    path = f"{APPS}/{plural}/web"
    made = await api.post(f"{APPS}/{plural}", workload())
    scaled = await api.patch(path, {"spec": {"replicas": 3}})
    assert scaled.body["spec"] == {**made.body["spec"], "replicas": 3}
    refused = await api.patch(path, {"spec": {"template": template}})
    assert refused.status == 422
    assert why in refused.body["message"]


async def test_what_a_patch_brings_into_a_template_gets_its_defaults(api: Api) -> None:
    await api.post(f"{APPS}/deployments", workload())
    side = {"name": "side", "image": "proxy", "ports": [{"containerPort": 80}]}
    change = {"spec": {"template": {"spec": {"containers": [*CONTAINERS, side]}}}}
    changed = await api.patch(f"{APPS}/deployments/web", change)
    first, second = changed.body["spec"]["template"]["spec"]["containers"]
    assert first["terminationMessagePolicy"] == second["terminationMessagePolicy"] == "File"
    assert second["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert changed.body["metadata"]["generation"] == 2


async def test_annotations_make_a_new_generation_of_deployments(api: Api) -> None:
    await api.post(f"{APPS}/deployments", workload())
    change = {"metadata": {"annotations": {"note": "x"}}}
    answer = await api.patch(f"{APPS}/deployments/web", change)
    assert answer.body["metadata"]["generation"] == 2


async def test_daemon_sets_count_changes_of_their_template(api: Api) -> None:
    counter = "deprecated.daemonset.template.generation"
    made = await api.post(f"{APPS}/daemonsets", workload())
    assert made.body["metadata"]["annotations"][counter] == "1"
    change = {"spec": {"template": {"metadata": {"labels": {"app": "web", "v": "2"}}}}}
    changed = await api.patch(f"{APPS}/daemonsets/web", change)
    assert changed.body["metadata"]["annotations"][counter] == "2"


async def test_two_jobs_select_different_pods(api: Api) -> None:
    one, two = [(await api.post(JOBS, job(name))).body for name in ("one", "two")]
    for made in (one, two):
        uid, labels = made["metadata"]["uid"], made["spec"]["template"]["metadata"]["labels"]
        assert made["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert labels["batch.kubernetes.io/controller-uid"] == labels["controller-uid"] == uid
        assert labels["batch.kubernetes.io/job-name"] == made["metadata"]["name"]
    assert one["spec"]["selector"] != two["spec"]["selector"]


async def test_deleting_a_job_leaves_its_pods_unless_told(api: Api) -> None:
    await api.post(JOBS, job("kept"))
    kept = await api.delete(f"{JOBS}/kept")
    assert kept.body["metadata"]["finalizers"] == ["orphan"]
    assert "preserved by default" in kept.headers.get("warning")

    await api.post(JOBS, job("gone"))
    gone = await api.delete(f"{JOBS}/gone?propagationPolicy=Background")
    assert gone.body["status"] == "Success"
    assert not gone.headers.get("warning")


async def test_the_template_of_a_job_is_fixed_unless_it_is_suspended(api: Api) -> None:
    change = {"spec": {"template": {"spec": {"nodeSelector": {"gpu": "yes"}}}}}
    await api.post(JOBS, job("running"))
    refused = await api.patch(f"{JOBS}/running", change)
    assert refused.status == 422
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == ["spec.template"]

    await api.post(JOBS, job("waiting", suspend=True))
    assert (await api.patch(f"{JOBS}/waiting", change)).status == 200


async def test_a_dry_run_makes_nothing_and_finds_what_is_there(api: Api) -> None:
    dry = await api.post(f"{JOBS}?dryRun=All", job())
    assert dry.status == 201
    assert "resourceVersion" not in dry.body["metadata"]
    assert (await api.get(f"{JOBS}/sums")).status == 404

    made = await api.post(JOBS, job())
    assert (await api.post(f"{JOBS}?dryRun=All", job())).status == 409
    change = {"spec": {"parallelism": 4}}
    changed = await api.patch(f"{JOBS}/sums?dryRun=All", change)
    assert changed.body["metadata"]["resourceVersion"] == made.body["metadata"]["resourceVersion"]


async def test_leases_are_made_by_an_update(api: Api) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/leader"
    lease: dict[str, Any] = {"metadata": {"name": "leader"}, "spec": {"holderIdentity": "me"}}
    assert (await api.put(path, lease)).status == 201
    again = await api.put(path, lease)
    assert again.status == 422
    assert again.body["details"]["causes"][0]["field"] == "metadata.resourceVersion"


@pytest.mark.parametrize(
    ("done", "failed", "overlap"),
    [
        ("0,2-4", "1,5", None),
        ("0-3", "3-4", 3),
        ("0-9", "5", 5),
        ("7", "0-9", 7),
        ("0,4,8", "1-3,5-7,8", 8),
    ],
)
async def test_an_index_of_a_job_cannot_both_complete_and_fail(
    api: Api, done: str, failed: str, overlap: int | None
) -> None:
    spec: dict[str, Any] = {"completionMode": "Indexed", "completions": 10}
    await api.post(JOBS, job(**spec, backoffLimitPerIndex=1, parallelism=2))
    status = {"status": {"completedIndexes": done, "failedIndexes": failed}}
    answer = await api.patch(f"{JOBS}/sums/status", status)
    assert answer.status == (200 if overlap is None else 422)
    if overlap is not None:
        assert f"overlap at index: {overlap}" in answer.body["message"]


async def test_indexes_of_a_hostile_length_are_not_read(api: Api) -> None:
    spec: dict[str, Any] = {"completionMode": "Indexed", "completions": 100_000}
    await api.post(JOBS, job(**spec, backoffLimitPerIndex=1, parallelism=2))
    for length, status in ((2, 422), (50_000, 200)):
        text = ",".join(["0-99999"] * length)
        change = {"status": {"completedIndexes": text, "failedIndexes": text}}
        assert (await api.patch(f"{JOBS}/sums/status", change)).status == status

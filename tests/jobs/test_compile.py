"""The exact objects that a task becomes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kvestigate.errors import InputError
from kvestigate.jobs.tasks.compile import Submission, compile_companions, compile_jobs
from kvestigate.jobs.tasks.parse import parse_task
from kvestigate.jobs.tasks.placement import place
from kvestigate.jobs.tasks.script import literal
from kvestigate.jobs.users import User
from kvestigate.kube.names import label_problems, label_value_problems
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.meta import Metadata

H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}


def submission(nodes: list[dict[str, str]] | None = None, **fields: Any) -> Submission:
    task = parse_task({"run": "echo hi", **fields})
    claims = {name: f"{name}-vol12345" for name in task.volumes.values()}
    user = User("user@example.com")
    known = None if nodes is None else [Node(Metadata(labels=each)) for each in nodes]
    return Submission(task, "abc12345", user, "default", place(task, known), claims)


def pod_of(job: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = job["spec"]["template"]["spec"]
    return spec


def container_of(job: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod_of(job)["containers"]
    assert isinstance(container, dict)
    return container


def values_of(job: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in container_of(job)["env"]}


def test_a_task_of_one_node_is_one_job() -> None:
    made = submission(name="training")
    (job,) = compile_jobs(made)
    assert job["metadata"]["name"] == "training-abc12345"
    labels = job["metadata"]["labels"]
    assert labels == {
        "skypilot-task": "true",
        "task-id": "abc12345",
        "task-name": "training",
        "username": "user-example.com",
        "skypilot-owner": made.user.digest,
        "node-idx": "0",
    }
    assert job["spec"]["template"]["metadata"]["labels"] == labels
    assert job["spec"]["backoffLimit"] == 0
    assert pod_of(job)["restartPolicy"] == "Never"
    assert container_of(job)["image"] == "python:3.13-slim"
    assert "resources" not in container_of(job)
    assert compile_companions(made) == []


def test_a_task_of_two_nodes_is_two_jobs_that_find_each_other() -> None:
    made = submission(name="training", num_nodes=2)
    jobs = compile_jobs(made)
    names = [job["metadata"]["name"] for job in jobs]
    assert names == ["training-abc12345-node-0", "training-abc12345-node-1"]
    assert [job["metadata"]["labels"]["node-idx"] for job in jobs] == ["0", "1"]
    (service,) = compile_companions(made)
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"task-id": "abc12345"}
    for rank, job in enumerate(jobs):
        assert pod_of(job)["hostname"] == f"node-{rank}"
        assert pod_of(job)["subdomain"] == service["metadata"]["name"]
        env = values_of(job)
        assert env["NODE_RANK"] == env["SKYPILOT_NODE_RANK"] == str(rank)
        assert env["NUM_NODES"] == env["SKYPILOT_NUM_NODES"] == "2"
        assert env["MASTER_ADDR"] == f"node-0.{service['metadata']['name']}"


def test_the_users_address_wins_and_the_users_rank_does_not() -> None:
    envs = {"MASTER_ADDR": "master-service", "NODE_RANK": "7"}
    env = values_of(compile_jobs(submission(num_nodes=2, envs=envs))[1])
    assert (env["MASTER_ADDR"], env["NODE_RANK"]) == ("master-service", "1")


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (
            {"cpus": "4", "memory": "8Gi"},
            {"requests": {"cpu": "4", "memory": "8Gi"}, "limits": {"cpu": "4", "memory": "8Gi"}},
        ),
        ({"cpus": "4+", "memory": "16+"}, {"requests": {"cpu": "4", "memory": "16Gi"}}),
        ({"accelerators": "2"}, {"limits": {"nvidia.com/gpu": "2"}}),
        ({"disk_size": 10}, {"requests": {"ephemeral-storage": "10Gi"}}),
    ],
)
def test_resources_become_requests_and_limits(
    resources: dict[str, Any], expected: dict[str, Any]
) -> None:
    (job,) = compile_jobs(submission(resources=resources))
    assert container_of(job)["resources"] == expected


def test_gpus_are_counted_for_the_program() -> None:
    (job,) = compile_jobs(submission(resources={"accelerators": "4"}))
    assert values_of(job)["SKYPILOT_NUM_GPUS_PER_NODE"] == "4"
    (job,) = compile_jobs(submission())
    assert values_of(job)["SKYPILOT_NUM_GPUS_PER_NODE"] == "0"


def test_a_named_accelerator_chooses_nodes_by_their_labels() -> None:
    (job,) = compile_jobs(submission([H100, {}], resources={"accelerators": "H100"}))
    affinity = pod_of(job)["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-H100-80GB-HBM3"]}
    ]


def test_volumes_are_claims_each_mounted_once() -> None:
    (job,) = compile_jobs(submission(volumes={"/data": "v", "/more": "v", "/other": "w"}))
    *volumes, _shared_memory = pod_of(job)["volumes"]
    assert [v["persistentVolumeClaim"]["claimName"] for v in volumes] == [
        "v-vol12345",
        "w-vol12345",
    ]
    assert [(m["mountPath"], m["name"]) for m in container_of(job)["volumeMounts"]] == [
        ("/data", "volume-0"),
        ("/more", "volume-0"),
        ("/other", "volume-1"),
        ("/dev/shm", "shm"),
    ]


def test_ports_become_a_service_of_the_first_node() -> None:
    (service,) = compile_companions(submission(resources={"ports": [8080, 9000]}))
    assert [port["port"] for port in service["spec"]["ports"]] == [8080, 9000]
    assert service["spec"]["selector"] == {"task-id": "abc12345", "node-idx": "0"}


def test_secrets_are_in_no_job() -> None:
    made = submission(secrets={"TOKEN": "hush"})
    (secret,) = compile_companions(made)
    assert secret["stringData"] == {"TOKEN": "hush"}
    (job,) = compile_jobs(made)
    assert "hush" not in str(job)
    assert "secretKeyRef" in str(job)


@pytest.mark.parametrize(
    "name", ["a" * 300, "Ünïcode", "-", "123", "a,username=b", "a_b.c", "x" * 63]
)
@pytest.mark.parametrize("nodes", [1, 2])
def test_any_name_gives_valid_names_and_labels(name: str, nodes: int) -> None:
    made = submission(name=name, num_nodes=nodes)
    for body in (*compile_jobs(made), *compile_companions(made)):
        assert label_problems(body["metadata"]["name"]) == []
        for value in body["metadata"]["labels"].values():
            assert label_value_problems(value) == []
        assert body["metadata"]["annotations"]["skypilot-name"] == name


def test_a_label_of_ours_cannot_be_set() -> None:
    with pytest.raises(InputError, match=r"resources.labels.skypilot-owner"):
        compile_jobs(submission(resources={"labels": {"skypilot-owner": "x"}}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("echo $HOME ${A}", "echo $HOME ${A}"),
        ("echo $(date)", "echo $$(date)"),
        ("echo $$", "echo $$$"),
        ("a $$(x) b$", "a $$$$(x) b$"),
    ],
)
def test_the_kubelet_gives_commands_back_unchanged(text: str, expected: str) -> None:
    assert literal(text) == expected


def test_skypilots_variables_are_there() -> None:
    env = values_of(compile_jobs(submission(name="train", resources={"accelerators": 4}))[0])
    assert {
        name: env[name] for name in env if name.startswith("SKYPILOT_") and name.endswith("_NODE")
    } == {"SKYPILOT_NUM_GPUS_PER_NODE": "4", "SKYPILOT_SETUP_NUM_GPUS_PER_NODE": "4"}
    assert env["SKYPILOT_USER"] == "user@example.com"
    assert env["SKYPILOT_SETUP_NODE_RANK"] == env["SKYPILOT_JOB_RANK"] == "0"
    assert env["SKYPILOT_NUM_JOBS"] == "1"
    assert {"SKYPILOT_NODE_IPS", "SKYPILOT_SETUP_NODE_IPS"} <= env.keys()
    info = json.loads(env["SKYPILOT_CLUSTER_INFO"])
    assert (info["cluster_name"], info["cloud"]) == ("train", "Kubernetes")


def test_shared_memory_is_memory_unless_a_volume_is_there() -> None:
    (job,) = compile_jobs(submission())
    assert pod_of(job)["volumes"] == [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    assert container_of(job)["volumeMounts"] == [{"name": "shm", "mountPath": "/dev/shm"}]
    (job,) = compile_jobs(submission(volumes={"/dev/shm": "fast"}))
    (volume,) = pod_of(job)["volumes"]
    assert volume["persistentVolumeClaim"] == {"claimName": "fast-vol12345"}

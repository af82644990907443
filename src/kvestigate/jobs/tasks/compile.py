"""From a task to the exact Kubernetes objects that run it. Pure."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from kvestigate.errors import InputError
from kvestigate.jobs.tasks import labels
from kvestigate.jobs.tasks.model import Accelerator, Resources, Task
from kvestigate.jobs.tasks.pieces import Files, piece_name
from kvestigate.jobs.tasks.placement import GPU, Placement, named
from kvestigate.jobs.tasks.script import FILES, literal, script
from kvestigate.jobs.tasks.statuses import CONTAINER
from kvestigate.jobs.users import User
from kvestigate.kube.names import LABEL_MAX

Manifest = dict[str, Any]

SHARED_MEMORY = "/dev/shm"  # a mount, not a file of ours
_NOT_IN_NAMES = re.compile(r"[^a-z0-9-]+")


@dataclass(frozen=True, slots=True)
class Submission:
    """All that is decided when a task is submitted."""

    task: Task
    task_id: str
    """Eight lower-case letters and digits."""
    user: User
    namespace: str
    placement: Placement
    claims: Mapping[str, str]
    """The claim behind each volume that the task names."""
    files: Files | None = None
    """What was uploaded for the task."""
    submitted: str = ""
    """`2026-10-05T12:34:56.789012`, in UTC."""

    @property
    def name(self) -> str:
        return self.task.name or f"task-{self.task_id}"

    @property
    def service(self) -> str:
        """The domain under which the nodes find each other."""
        return f"task-{self.task_id}"

    def job_name(self, index: int) -> str:
        """`training-job-abc12345-node-0`, cut where it would be too long for a label."""
        ending = f"-{self.task_id}"
        if self.task.num_nodes > 1:
            ending += f"-node-{index}"
        return object_name(self.name)[: LABEL_MAX - len(ending)].rstrip("-") + ending


def ports_name(task_id: str) -> str:
    """The Service of a task's ports."""
    return f"task-{task_id}-ports"


def object_name(text: str) -> str:
    """`text` as the beginning of an object's name."""
    return _NOT_IN_NAMES.sub("-", text.lower()).strip("-") or "task"


def compile_jobs(submission: Submission) -> list[Manifest]:
    """One Job a node."""
    return [_job(submission, index) for index in range(submission.task.num_nodes)]


def compile_companions(submission: Submission) -> list[Manifest]:
    """The Services and Secret beside the jobs; the first job owns them."""
    task = submission.task
    manifests = []
    if task.num_nodes > 1:
        manifests.append(_headless(submission))
    if submission.placement.resources.ports:
        manifests.append(_ports(submission))
    if task.secrets:
        manifests.append(_secret(submission))
    return manifests


def _metadata(submission: Submission, name: str, **extra: str) -> Manifest:
    for key in submission.placement.resources.labels:
        if labels.is_reserved(key):
            raise InputError("this label is reserved", where=f"resources.labels.{key}")
    restarts = submission.placement.resources.recovery.restarts
    own = labels.of_task(submission.user, submission.task_id, submission.name)
    return {
        "name": name,
        "namespace": submission.namespace,
        "labels": {**submission.placement.resources.labels, **own, **extra},
        "annotations": {
            labels.EXACT_NAME: submission.name,
            labels.NUM_NODES: str(submission.task.num_nodes),
            labels.START_WITHIN: str(submission.task.limits.start_seconds),
            **({labels.SUBMITTED: submission.submitted} if submission.submitted else {}),
            **({labels.RECOVERS: str(restarts)} if restarts else {}),
        },
    }


def _job(submission: Submission, index: int) -> Manifest:
    metadata = _metadata(submission, submission.job_name(index), **{labels.NODE_INDEX: str(index)})
    template = {"labels": metadata["labels"], "annotations": metadata["annotations"]}
    limits = submission.task.limits
    pod = _pod(submission, index)
    if index == 0:
        notes = {**metadata["annotations"], **_choices(submission)}
        metadata = {**metadata, "annotations": notes}
    alone = submission.task.num_nodes == 1
    if limits.queue and alone:
        metadata = {**metadata, "labels": {**metadata["labels"], labels.QUEUE: limits.queue}}
    elif limits.queue:
        template = _queued_together(template, submission)
        # Ours as well as Kueue's: without a Kueue that knows groups nothing runs past its queue.
        pod["schedulingGates"] = [{"name": labels.QUEUE_GATE}]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": submission.placement.resources.recovery.restarts if alone else 0,
            "podFailurePolicy": _failure_policy(submission),
            "activeDeadlineSeconds": limits.deadline_seconds,
            "ttlSecondsAfterFinished": limits.ttl_seconds,
            **({"suspend": True} if limits.queue and alone else {}),
            "template": {"metadata": template, "spec": pod},
        },
    }


def _failure_policy(submission: Submission) -> Manifest:
    """A pod that the cluster ended, or an exit code to recover from, is no failure of the task.

    The pod of a single node is replaced by Kubernetes. Of several nodes the job fails with the
    reason `PodFailurePolicy`, and whoever keeps the task starts all nodes again.
    """
    action = "Ignore" if submission.task.num_nodes == 1 else "FailJob"
    disrupted = {"type": "DisruptionTarget", "status": "True"}
    rules: list[Manifest] = [{"action": action, "onPodConditions": [disrupted]}]
    if codes := submission.placement.resources.recovery.exit_codes:
        matched = {"containerName": CONTAINER, "operator": "In", "values": list(codes)}
        rules.append({"action": action, "onExitCodes": matched})
    return {"rules": rules}


def _choices(submission: Submission) -> dict[str, str]:
    """The annotations with the choices before and after the one that was taken."""
    placement = submission.placement
    notes = {}
    if placement.skipped:
        lines = (why.removeprefix("resources: ") for why in placement.skipped)
        notes[labels.STORY] = "\n".join(f"skipped {line}" for line in lines)
    if placement.later:
        later = [_choice(replace(submission, placement=each)) for each in placement.later]
        notes[labels.LATER] = written_choices(later)
    return notes


class Choice(msgspec.Struct, frozen=True):
    """What is particular about the pods of one choice of resources."""

    name: str
    """`A100:8`"""
    gpus: str
    affinity: dict[str, Any] | None
    tolerations: list[dict[str, Any]] | None
    image: str
    resources: dict[str, dict[str, str]] | None


def _choice(submission: Submission) -> Choice:
    pod = _pod(submission, 0)
    [container] = pod["containers"]
    resources = submission.placement.resources
    return Choice(
        named(resources),
        str(resources.accelerator.count if resources.accelerator else 0),
        pod.get("affinity"),
        pod.get("tolerations"),
        container["image"],
        container.get("resources"),
    )


def written_choices(choices: Sequence[Choice]) -> str:
    return msgspec.json.encode(choices).decode()


def later_choices(annotations: Mapping[str, str]) -> Sequence[Choice]:
    """The choices that are left; none if the annotation is not what we write."""
    try:
        return msgspec.json.decode(annotations.get(labels.LATER, "[]"), type=list[Choice])
    except msgspec.DecodeError:
        return []


def with_choice(job: Manifest, choice: Choice) -> Manifest:
    """The job of a task with another choice of resources."""
    changed = copy.deepcopy(job)
    pod = changed["spec"]["template"]["spec"]
    [container] = pod["containers"]
    container["image"] = choice.image
    for part, key, value in (
        (pod, "affinity", choice.affinity),
        (pod, "tolerations", choice.tolerations),
        (container, "resources", choice.resources),
    ):
        part.pop(key, None)
        part.update({key: value} if value else {})
    for variable in container["env"]:
        if variable["name"].endswith("NUM_GPUS_PER_NODE"):
            variable["value"] = choice.gpus
    return changed


def again(job: Manifest, restart: int) -> Manifest:
    """A task's job as it was submitted, to be created once more.

    The nodes have new names, since caches of DNS remember the addresses of the old ones.
    """
    metadata, spec = job["metadata"], copy.deepcopy(job["spec"])
    spec.pop("selector", None)
    spec["suspend"] = False
    template = spec["template"]
    template["metadata"]["labels"] = {
        key: value
        for key, value in template["metadata"]["labels"].items()
        if not key.startswith("batch.kubernetes.io/") and key not in ("job-name", "controller-uid")
    }
    pod = template["spec"]
    [container] = pod["containers"]
    if service := pod.get("subdomain"):
        old = re.compile(rf"\bnode-(\d+)(?:-again-\d+)?(?=\.{re.escape(service)}\b)")
        new = rf"node-\1-again-{restart}"
        pod["hostname"] = old.sub(new, f"{pod['hostname']}.{service}").removesuffix(f".{service}")
        container["command"] = [old.sub(new, word) for word in container["command"]]
        for variable in container["env"]:
            if "value" in variable:
                variable["value"] = old.sub(new, variable["value"])
    kept = {key: metadata[key] for key in ("name", "namespace", "labels")}
    notes = {
        key: value
        for key, value in metadata.get("annotations", {}).items()
        if key.startswith("skypilot-") and key != labels.RESTARTING
    }
    kept["annotations"] = notes | {labels.RESTARTS: str(restart)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": kept, "spec": spec}


def _queued_together(template: Manifest, submission: Submission) -> Manifest:
    """The pods of all jobs as one workload, which Kueue admits as a whole.

    A job is a workload of its own as soon as it names a queue. So the pods do, and the jobs do not.
    """
    group = {
        labels.QUEUE: submission.task.limits.queue,
        labels.QUEUE_GROUP: submission.service,
    }
    notes = {
        labels.QUEUE_GROUP_SIZE: str(submission.task.num_nodes),
        # What fails is not replaced, and must not be waited for.
        labels.QUEUE_RETRIES: "false",
    }
    return {
        "labels": {**template["labels"], **group},
        "annotations": {**template["annotations"], **notes},
    }


def _pod(submission: Submission, index: int) -> Manifest:
    spec: Manifest = {"restartPolicy": "Never", "automountServiceAccountToken": False}
    if submission.task.num_nodes > 1:
        spec |= {"hostname": f"node-{index}", "subdomain": submission.service}
    placement = submission.placement
    if placement.terms:
        terms = [
            {
                "matchExpressions": [
                    {"key": key, "operator": "In", "values": list(values)} for key, values in term
                ]
            }
            for term in placement.terms
        ]
        required = {"nodeSelectorTerms": terms}
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
        }
    if placement.tolerations:
        spec["tolerations"] = [
            {"key": key, "operator": "Exists", "effect": "NoSchedule"}
            for key in placement.tolerations
        ]
    volumes, mounts = _volumes(submission)
    if submission.files is not None:
        volumes.append(_files(submission, submission.files))
        mounts.append({"name": "files", "mountPath": FILES})
    container = _container(submission, index)
    if volumes:
        spec["volumes"] = volumes
        container["volumeMounts"] = mounts
    return spec | {"containers": [container]}


def _container(submission: Submission, index: int) -> Manifest:
    resources = submission.placement.resources
    container: Manifest = {
        "name": CONTAINER,
        "image": resources.image,
        "command": ["/bin/sh", "-c", literal(_script(submission))],
        "env": _environment(submission, index),
    }
    if resources.ports:
        container["ports"] = [{"containerPort": port} for port in resources.ports]
    if needed := _resources(resources):
        container["resources"] = needed
    return container


def _script(submission: Submission) -> str:
    return script(submission.task, _peers(submission), submission.files)


def _peers(submission: Submission) -> tuple[str, ...]:
    count = submission.task.num_nodes
    if count == 1:
        return ()
    return tuple(f"node-{index}.{submission.service}" for index in range(count))


def _environment(submission: Submission, index: int) -> list[Manifest]:
    task = submission.task
    gpus = submission.placement.resources.accelerator or Accelerator(0)
    rank, nodes = str(index), str(task.num_nodes)
    ours = {
        "NODE_RANK": rank,
        "NUM_NODES": nodes,
        "SKYPILOT_NODE_RANK": rank,
        "SKYPILOT_NUM_NODES": nodes,
        "SKYPILOT_NUM_GPUS_PER_NODE": str(gpus.count),
        "SKYPILOT_SETUP_NODE_RANK": rank,
        "SKYPILOT_SETUP_NUM_GPUS_PER_NODE": str(gpus.count),
        "SKYPILOT_TASK_ID": submission.task_id,
        "SKYPILOT_USER": literal(submission.user.name),
        "SKYPILOT_CLUSTER_INFO": literal(_cluster_info(submission)),
        "SKYPILOT_JOB_RANK": "0",
        "SKYPILOT_NUM_JOBS": "1",
    }
    peers = _peers(submission)
    address: list[Manifest] = []
    if not peers:
        source = {"fieldRef": {"fieldPath": "status.podIP"}}
        names = ("SKYPILOT_NODE_IPS", "SKYPILOT_SETUP_NODE_IPS")
        address = [{"name": name, "valueFrom": source} for name in names]
    # The user's own address of the first node wins over ours; the ranks are facts.
    master = {"MASTER_ADDR": peers[0]} if peers else {}
    plain = {name: literal(value) for name, value in task.envs.items()}
    return [
        *({"name": name, "value": value} for name, value in (master | plain | ours).items()),
        *address,
        *(
            {
                "name": name,
                "valueFrom": {"secretKeyRef": {"name": submission.service, "key": name}},
            }
            for name in task.secrets
        ),
    ]


def _cluster_info(submission: Submission) -> str:
    """What SkyPilot tells programs of where they run; a Kubernetes cluster has no region."""
    return json.dumps(
        {
            "cluster_name": object_name(submission.name),
            "cloud": "Kubernetes",
            "region": None,
            "zone": None,
        }
    )


def _resources(resources: Resources) -> Manifest:
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    for name, amount in (("cpu", resources.cpus), ("memory", resources.memory)):
        if amount is not None:
            requests[name] = amount.quantity
            if not amount.at_least:
                limits[name] = amount.quantity
    if resources.disk:
        requests["ephemeral-storage"] = resources.disk
    if resources.accelerator is not None:
        limits[GPU] = str(resources.accelerator.count)
    return {key: value for key, value in (("requests", requests), ("limits", limits)) if value}


def _volumes(submission: Submission) -> tuple[list[Manifest], list[Manifest]]:
    volumes: dict[str, Manifest] = {}
    mounts = []
    for path, volume in submission.task.volumes.items():
        claim = submission.claims[volume]
        if claim not in volumes:
            source = {"claimName": claim}
            volumes[claim] = {"name": f"volume-{len(volumes)}", "persistentVolumeClaim": source}
        mounts.append({"name": volumes[claim]["name"], "mountPath": path})
    if SHARED_MEMORY not in submission.task.volumes:
        # A container has 64 MiB there, which is too little for what loads data in parallel.
        volumes[SHARED_MEMORY] = {"name": "shm", "emptyDir": {"medium": "Memory"}}
        mounts.append({"name": "shm", "mountPath": SHARED_MEMORY})
    return list(volumes.values()), mounts


def _headless(submission: Submission) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(submission, submission.service),
        "spec": {
            # A name appears when its node runs: an address alone would be found too early.
            "clusterIP": "None",
            "selector": {labels.TASK_ID: submission.task_id},
        },
    }


def _ports(submission: Submission) -> Manifest:
    ports = submission.placement.resources.ports
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(submission, ports_name(submission.task_id)),
        "spec": {
            "selector": {labels.TASK_ID: submission.task_id, labels.NODE_INDEX: "0"},
            "ports": [{"name": f"port-{port}", "port": port} for port in ports],
        },
    }


def _secret(submission: Submission) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(submission, submission.service),
        "stringData": dict(submission.task.secrets),
    }


def _files(submission: Submission, files: Files) -> Manifest:
    if files.streamed:
        return {"name": "files", "emptyDir": {}}
    # Zeros before the number, so that the shell's order is ours.
    sources = [
        {
            "secret": {
                "name": piece_name(submission.user, digest),
                "items": [{"key": "piece", "path": f"part-{index:06}"}],
            }
        }
        for index, digest in enumerate(files.pieces)
    ]
    return {"name": "files", "projected": {"sources": sources}}

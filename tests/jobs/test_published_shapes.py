"""Task files in the shapes that SkyPilot's users write."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kvestigate.client.api import Api
from kvestigate.jobs.tasks.compile import Submission, compile_companions, compile_jobs
from kvestigate.jobs.tasks.model import Task
from kvestigate.jobs.tasks.parse import parse_task
from kvestigate.jobs.tasks.pieces import Files
from kvestigate.jobs.tasks.placement import place
from kvestigate.jobs.tasks.script import script
from kvestigate.jobs.users import User
from kvestigate.kube import builtins
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.meta import Metadata
from kvestigate.kube.yaml_documents import load

KINDS = {
    "Job": builtins.resource("jobs.batch"),
    "Service": builtins.resource("services"),
    "Secret": builtins.resource("secrets"),
}
TASKS = {
    path.stem: parse_task(load(path.read_bytes(), path.name)[0].value)
    for path in sorted((Path(__file__).parent / "tasks").glob("*.yaml"))
}
FILES = Files("0" * 64, ("1" * 64, "2" * 64))
NODES = [
    {
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
        "node.kubernetes.io/instance-type": "p3.8xlarge",
        "karpenter.sh/capacity-type": "spot",
    }
]


def test_there_are_twenty() -> None:
    assert len(TASKS) == 20


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
async def test_it_becomes_objects_that_a_cluster_takes(task: Task, api: Api) -> None:
    claims = {name: name for name in task.volumes.values()}
    files = FILES if task.uploads else None
    placement = place(task, [Node(Metadata(labels=each)) for each in NODES])
    made = Submission(task, "abc12345", User("jane"), "default", placement, claims, files)
    jobs = compile_jobs(made)
    assert len(jobs) == task.num_nodes
    for body in (*jobs, *compile_companions(made)):
        resource = KINDS[body["kind"]]
        stored = await api.create(resource, body, dry_run=True)
        assert stored["metadata"]["labels"]["task-id"] == "abc12345"


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_its_script_is_one_for_the_shell(task: Task) -> None:
    names = ("node-0.t", "node-1.t") if task.num_nodes > 1 else ()
    checked = subprocess.run(
        ["sh", "-n"],
        input=script(task, names, FILES),
        text=True,
        capture_output=True,
        check=False,
    )
    assert (checked.returncode, checked.stderr) == (0, "")

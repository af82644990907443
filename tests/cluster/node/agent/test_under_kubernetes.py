"""Our node under the real control plane, used by the real kubectl."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kvestigate.client.access import resolve
from kvestigate.client.api import Api
from kvestigate.client.choice import AccessOptions
from kvestigate.client.connect import connect
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.kube.resources import Resource
from tests.cluster.node.conftest import PYTHON, SHOUT, MakeHost, Object, lone_agent, shell
from tests.upstream import binaries
from tests.upstream.cluster import UpstreamCluster

NAMESPACE = "node-suite"
# The Service's endpoints come some time after it: until then its address refuses.
ASK = f"""
import socket, time
deadline = time.monotonic() + 30
seen = dict()
while len(seen) < 3 and time.monotonic() < deadline:
    try:
        peer = socket.create_connection(("d.{NAMESPACE}.svc", 80), 10)
    except OSError:
        time.sleep(0.1)
        continue
    peer.sendall(b"hello")
    seen[peer.getpeername()[0]] = peer.recv(100).decode()
print(*seen.values(), *seen)
"""
JOBS = Resource("batch", "v1", "jobs", "Job")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


class Kubectl:
    def __init__(self, kubeconfig: Path) -> None:
        self._words = [
            binaries.find().path("kubectl"),
            f"--kubeconfig={kubeconfig}",
            f"--namespace={NAMESPACE}",
            f"--cache-dir={kubeconfig.parent / 'cache'}",
        ]

    async def __call__(self, *arguments: str, stdin: bytes = b"") -> tuple[int, str]:
        """Exit code and all output."""
        process = await asyncio.create_subprocess_exec(
            *self._words, *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        async with asyncio.timeout(60):
            output, _ = await process.communicate(stdin)
        return process.returncode or 0, output.decode()


@pytest.fixture
def kubectl(kubernetes: UpstreamCluster) -> Kubectl:
    return Kubectl(kubernetes.admin_kubeconfig())


@asynccontextmanager
async def connected(cluster: UpstreamCluster) -> AsyncIterator[Api]:
    environ = {"KUBECONFIG": str(cluster.admin_kubeconfig()), "PATH": "/usr/bin:/bin"}
    async with connect(resolve(AccessOptions(), environ, None)) as api:
        yield api


@pytest.mark.timeout(240)
async def test_workloads_run_and_kubectl_reaches_them(
    kubernetes: UpstreamCluster, kubectl: Kubectl, make_host: MakeHost, tmp_path: Path
) -> None:
    kubernetes.start_controllers()
    kubernetes.start_scheduler()
    async with connected(kubernetes) as api, lone_agent(api, make_host("here"), NodeConfig("here")):
        await kubectl("create", "namespace", NAMESPACE)
        try:
            await _a_job_finishes_and_its_logs_are_read(api, kubectl)
            await _a_deployment_rolls_out_and_is_entered(api, kubectl, tmp_path)
            await _a_service_leads_to_its_pods(api, kubectl)
        finally:
            await kubectl("delete", "namespace", NAMESPACE)


async def _a_job_finishes_and_its_logs_are_read(api: Api, kubectl: Kubectl) -> None:
    template = _template("j", shell("echo done by $HOSTNAME"), restartPolicy="Never")
    spec = {"completions": 2, "parallelism": 2, "template": template}
    job = {"metadata": {"name": "j", "namespace": NAMESPACE}, "spec": spec}
    await api.create(JOBS, job)
    code, said = await kubectl("wait", "--for=condition=Complete", "job/j", "--timeout=40s")
    assert code == 0, said
    _, said = await kubectl("logs", "-l", "app=j", "--tail=-1")
    assert said.count("done by j-") == 2


async def _a_deployment_rolls_out_and_is_entered(
    api: Api, kubectl: Kubectl, tmp_path: Path
) -> None:
    main = {"command": [PYTHON, "-c", SHOUT]}
    spec = {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "d"}},
        "template": _template("d", main, terminationGracePeriodSeconds=1),
    }
    await api.create(DEPLOYMENTS, {"metadata": {"name": "d", "namespace": NAMESPACE}, "spec": spec})
    code, said = await kubectl("rollout", "status", "deployment/d", "--timeout=40s")
    assert code == 0, said
    code, said = await kubectl("exec", "deploy/d", "--", "sh", "-c", "echo inside; exit 4")
    assert code == 4
    assert "inside" in said
    _, said = await kubectl("exec", "-i", "deploy/d", "--", "cat", stdin=b"typed\n")
    assert said.endswith("typed\n")
    _, listed = await kubectl("get", "pods", "-l", "app=d", "-o", "name")
    pod = listed.split()[0].removeprefix("pod/")
    (tmp_path / "sent").write_text("carried\n")
    code, said = await kubectl("cp", str(tmp_path / "sent"), f"{pod}:/var/tmp/kvestigate-sent")
    assert code == 0, said
    _, said = await kubectl("exec", pod, "--", "cat", "/var/tmp/kvestigate-sent")
    await kubectl("exec", pod, "--", "rm", "-f", "/var/tmp/kvestigate-sent")
    assert said == "carried\n"


async def _a_service_leads_to_its_pods(api: Api, kubectl: Kubectl) -> None:
    """All three listen on one port, and are reached by the name of one Service."""
    code, said = await kubectl("expose", "deployment/d", "--port=80", "--target-port=8080")
    assert code == 0, said
    template = _template("ask", {"command": [PYTHON, "-c", ASK]}, restartPolicy="Never")
    job = {"metadata": {"name": "ask", "namespace": NAMESPACE}, "spec": {"template": template}}
    await api.create(JOBS, job)
    code, said = await kubectl("wait", "--for=condition=Complete", "job/ask", "--timeout=40s")
    assert code == 0, said
    _, said = await kubectl("logs", "job/ask")
    addresses = said.split()
    assert addresses[:3] == ["HELLO"] * 3
    assert len(set(addresses[3:])) == 3


def _template(app: str, container: Object, **spec: object) -> Object:
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": "busybox", **container}], **spec},
    }

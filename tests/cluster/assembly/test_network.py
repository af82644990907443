"""Workloads of an embedded cluster find each other, and the API server, as on any other."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.cluster.assembly.directory import Shape
from kvestigate.cluster.node.hosts.seccomp import obstacle
from kvestigate.kube import builtins
from tests.cluster.assembly.conftest import all_running, cluster, until_pods

pytestmark = pytest.mark.skipif(bool(obstacle()), reason=obstacle())

PYTHON = os.path.realpath(sys.executable)

SERVE = """
import os, socket
server = socket.create_server(("", 8080))
while True:
    with server.accept()[0] as peer:
        peer.sendall(os.environ["HOSTNAME"].encode())
"""
# What clients do that start beside their server: try until it is there.
TRY = """
import socket, sys, time
def reach(host, port):
    deadline = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection((host, port), 10)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
"""
ASK = f"""{TRY}
for name in sys.argv[1:]:
    print(name, reach(name, 8080).recv(100).decode())
"""
RANKS = f"""{TRY}
import os
if os.environ["JOB_COMPLETION_INDEX"] == "0":
    peer = socket.create_server(("", 29500)).accept()[0]
    print("heard", peer.recv(100).decode())
    peer.sendall(b"welcome")
else:
    peer = reach(os.environ["MASTER_ADDR"], 29500)
    peer.sendall(b"rank 1")
    print("heard", peer.recv(100).decode())
"""
WHOAMI = """
import json, ssl, urllib.request
place = "/var/run/secrets/kubernetes.io/serviceaccount/"
body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
headers = {"Authorization": "Bearer " + open(place + "token").read()}
headers["Content-Type"] = "application/json"
trust = ssl.create_default_context(cafile=place + "ca.crt")
for host in ("kubernetes.default.svc", "kubernetes", "10.0.0.1"):
    url = f"https://{host}/apis/authentication.k8s.io/v1/selfsubjectreviews"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    answer = json.load(urllib.request.urlopen(request, context=trust, timeout=10))
    print(answer["status"]["userInfo"]["username"])
"""


def container(code: str, *arguments: str, **env: str) -> dict[str, Any]:
    variables = [{"name": name, "value": value} for name, value in env.items()]
    return {
        "name": "main",
        "image": "host",
        "command": [PYTHON, "-u", "-c", code, *arguments],
        "env": variables,
    }


async def create(api: Api, plural: str, name: str, **spec: Any) -> None:
    made = {"metadata": {"name": name}, "spec": spec}
    await api.create(builtins.resource(plural), made, namespace="default")


async def headless(api: Api, name: str, **selector: str) -> None:
    ports = [{"name": "main", "port": 8080}]
    await create(api, "services", name, clusterIP="None", selector=selector, ports=ports)


def template(labels: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": labels}, "spec": {"terminationGracePeriodSeconds": 0, **spec}}


async def outputs(api: Api, job: str, count: int) -> list[str]:
    """What each pod of a job said, once all have ended."""

    def done(pods: list[dict[str, Any]]) -> bool:
        phases = [(pod.get("status") or {}).get("phase") for pod in pods]
        return sum(phase in ("Succeeded", "Failed") for phase in phases) == count

    selection = Selection("default", labels=f"job-name={job}")
    names = sorted(pod["metadata"]["name"] for pod in await until_pods(api, done, selection))
    said = []
    for name in names:
        lines = [line.decode() async for line in api.logs(name, namespace="default")]
        said.append("\n".join(lines))
    return said


@pytest.mark.parametrize("host", ["namespace", "directory"])
async def test_workloads_find_each_other_and_the_api(tmp_path: Path, host: str) -> None:
    async with cluster(tmp_path, Shape(nodes=2, host=host)) as api:
        # A job whose ranks meet at the name of the first.
        await headless(api, "train", job="train")
        await create(
            api, "jobs.batch", "train", completions=2, parallelism=2, completionMode="Indexed",
            backoffLimit=0,
            template=template(
                {"job": "train"}, restartPolicy="Never", subdomain="train",
                containers=[container(RANKS, MASTER_ADDR="train-0.train")],
            ),
        )  # fmt: skip
        # A StatefulSet whose pods each have a name.
        await headless(api, "web", app="web")
        labels = {"app": "web"}
        await create(
            api, "statefulsets.apps", "web", serviceName="web", replicas=2,
            podManagementPolicy="Parallel", selector={"matchLabels": labels},
            template=template(labels, containers=[container(SERVE)]),
        )  # fmt: skip
        await until_pods(api, all_running(2), Selection("default", labels="app=web"))
        once = {"restartPolicy": "Never"}
        names = ("web-0.web", "web-1.web.default.svc.cluster.local")
        asking = template({}, **once, containers=[container(ASK, *names)])
        await create(api, "jobs.batch", "ask", backoffLimit=0, template=asking)
        who = template({}, **once, containers=[container(WHOAMI)])
        await create(api, "jobs.batch", "who", backoffLimit=0, template=who)

        assert await outputs(api, "train", 2) == ["heard rank 1", "heard welcome"]
        assert await outputs(api, "ask", 1) == [f"{names[0]} web-0\n{names[1]} web-1"]
        account = "system:serviceaccount:default:default"
        assert await outputs(api, "who", 1) == [f"{account}\n{account}\n{account}"]

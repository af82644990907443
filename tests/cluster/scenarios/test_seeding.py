"""A cluster made from a scenario."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kvestigate.client.call import Selection
from kvestigate.cluster.assembly.advertising import own_address
from kvestigate.cluster.assembly.directory import ClusterDirectory, Shape
from kvestigate.cluster.assembly.population import shape_of
from kvestigate.cluster.scenarios.library import Source, checked
from kvestigate.kube import builtins
from tests.cluster.assembly.conftest import Object, all_running, cluster, until_pods

SCENARIO = """\
apiVersion: kvestigate.dev/v1
kind: Scenario
metadata: {name: small}
spec:
  summary: a bit of everything
  missingImages: ["*:typo"]
  nodes:
    - {name: "n{{n}}", count: 2, host: simulated, gpus: {model: T4, count: 1}}
    - {name: closed, host: simulated, cordoned: true}
    - {name: gone, lost: true}
  workloads:
    - manifests:
        - {apiVersion: v1, kind: Namespace, metadata: {name: team}}
    - each: [{name: good, image: "x:1"}, {name: bad, image: "x:typo"}]
      manifests:
        - apiVersion: v1
          kind: Pod
          metadata: {name: "{{name}}", namespace: team}
          spec:
            containers:
              - name: main
                image: "{{image}}"
                resources: {limits: {nvidia.com/gpu: "1"}}
"""


def _condition(node: Object, type_: str) -> Any:
    return next(it["status"] for it in node["status"]["conditions"] if it["type"] == type_)


def _waiting(pod: Object) -> str:
    (status,) = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return str(status.get("state", {}).get("waiting", {}).get("reason", ""))


async def test_the_kubernetes_service_has_its_server_as_endpoint(tmp_path: Path) -> None:
    async with cluster(tmp_path, Shape(nodes=1, host="simulated")) as api:
        where = Selection("default", labels="kubernetes.io/service-name=kubernetes")
        found = await api.list(builtins.resource("endpointslices"), where, type=Object)
        address = own_address()
        if address is None:
            assert not found.items
            return
        (only,) = found.items
        assert only["endpoints"][0]["addresses"] == [address]
        config = json.loads(ClusterDirectory(tmp_path, "test").kubeconfig.read_text())
        server = config["clusters"][0]["cluster"]["server"]
        assert server.endswith(f":{only['ports'][0]['port']}")


async def test_everything_is_there_once_and_stays_away_when_deleted(tmp_path: Path) -> None:
    place = ClusterDirectory(tmp_path, "test")
    place.path.mkdir()
    place.scenario.write_text(SCENARIO)
    shape = shape_of(checked(Source("small", SCENARIO)))
    pods = builtins.resource("pods")
    async with cluster(tmp_path, shape) as api:
        found = await api.list(builtins.resource("nodes"), type=Object)
        nodes = {it["metadata"]["name"]: it for it in found.items}
        assert sorted(nodes) == ["closed", "gone", "n1", "n2"]
        assert nodes["closed"]["spec"]["unschedulable"] is True
        ready = {name: _condition(node, "Ready") for name, node in nodes.items()}
        assert ready == {"closed": "True", "gone": "Unknown", "n1": "True", "n2": "True"}
        assert nodes["n1"]["status"]["capacity"]["nvidia.com/gpu"] == "1"
        team = Selection("team")
        await until_pods(api, all_running(1), team)
        await until_pods(
            api, lambda pods: any(_waiting(pod) == "ImagePullBackOff" for pod in pods), team
        )
        await api.delete(pods, "good", namespace="team", grace_seconds=0)
    async with cluster(tmp_path, shape) as api:
        left = await api.list(pods, Selection("team"), type=Object)
        assert [pod["metadata"]["name"] for pod in left.items] == ["bad"]

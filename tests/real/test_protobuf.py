"""Protobuf bodies: our numbers beside Go's, our decoding beside the server's, and kubectl's use."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from kvestigate.cluster.plane.request.protobuf import envelope
from kvestigate.kube import facts, normal
from tests.upstream import binaries
from tests.upstream.cluster import UpstreamCluster
from tests.upstream.judge import Json
from tests.upstream.plane import ControlledPlane

pytestmark = pytest.mark.real


@pytest.mark.skipif(shutil.which("go") is None, reason="the numbers come from Go's sources")
def test_our_numbers_are_those_of_the_go_types() -> None:
    tool = binaries.ROOT / "tools" / "protobuf_facts.py"
    checked = subprocess.run([sys.executable, tool, "--check"], timeout=50, check=False)
    assert checked.returncode == 0, "run tools/protobuf_facts.py and commit the table"


def test_every_object_of_a_fresh_cluster_is_decoded_alike(kubernetes: UpstreamCluster) -> None:
    compared = 0
    with kubernetes.judge() as judge:
        for route in facts.routes():
            if "watch" not in route.verbs:
                continue
            root = f"/apis/{route.group}/{route.version}" if route.group else "/api/v1"
            for item in judge.get(f"{root}/{route.plural}?limit=20")["items"] or ():
                meta = item["metadata"]
                scope = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
                path = f"{root}{scope}/{route.plural}/{meta['name']}"
                plain = json.loads(judge.exchange("GET", path))
                packed = judge.exchange("GET", path, accept=envelope.MEDIA)
                if plain != json.loads(judge.exchange("GET", path)):
                    continue  # the server itself was writing it
                of = facts.for_kind(route.group, route.version, route.kind)
                assert of is not None
                assert normal.normalised(envelope.decode(packed, "", ""), of) == plain, path
                compared += 1
    assert compared > 100


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlledPlane]:
    with ControlledPlane(binaries.find(), tmp_path_factory.mktemp("plane")) as served:
        with served.judge() as judge:
            judge.post("/api/v1/namespaces", {"metadata": {"name": "typed"}})
        kubectl(served, "create", "deployment", "web", "--image=web", "--port=80")
        kubectl(served, "create", "cronjob", "tick", "--image=web", "--schedule=* * * * *")
        yield served


def kubectl(plane: ControlledPlane, *arguments: str) -> str:
    command = [plane.binaries.path("kubectl"), f"--kubeconfig={plane.kubeconfig}", "-n", "typed"]
    command += [f"--cache-dir={plane.directory / 'cache'}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


COMMANDS = [
    "create configmap c --from-literal=a=b",
    "create secret generic s --from-literal=a=b",
    "create secret docker-registry r --docker-username=u --docker-password=p",
    "create deployment d --image=web --replicas=2 --port=80 -- sleep 1",
    "create job j --image=web",
    "create job k --from=cronjob/tick",
    "create cronjob cj --image=web '--schedule=*/5 * * * *'",
    "create service clusterip svc --tcp=80:8080",
    "create service nodeport node --tcp=80:http",
    "create service externalname name --external-name=a.example",
    "create namespace other",
    "create serviceaccount sa",
    "create role r --verb=get,list --resource=pods --resource-name=a",
    "create rolebinding rb --role=r --user=u --serviceaccount=typed:sa",
    "create clusterrole cr --verb=get --non-resource-url=/x",
    "create clusterrolebinding crb --clusterrole=cr --group=g",
    "create quota q --hard=pods=1,requests.cpu=1500m",
    "create poddisruptionbudget pdb --selector=a=b --min-available=50%",
    "create priorityclass pc --value=-10 --preemption-policy=Never",
    "create ingress ing --rule=a.example/*=svc:http,tls=crt",
    "expose deployment web --port=80 --target-port=http",
    "autoscale deployment web --min=1 --max=3 --cpu=50%",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_kubectl_stores_what_it_shows(command: str, plane: ControlledPlane) -> None:
    words = shlex.split(command)
    place = words.index("--") if "--" in words else len(words)
    shown = json.loads(
        kubectl(plane, *words[:place], "--dry-run=client", "-o=json", *words[place:])
    )
    stored = json.loads(kubectl(plane, *words[:place], "-o=json", *words[place:]))
    assert missing(shown, stored) == []


def missing(shown: Any, stored: Any, path: str = "") -> list[str]:
    """The paths of what was shown and is not stored; the server may add, as defaults."""
    if isinstance(shown, dict):
        inner = stored if isinstance(stored, dict) else {}
        return [
            each
            for key, value in shown.items()
            if value not in (None, {}, []) and path + key != "status"
            for each in missing(value, inner.get(key), f"{path}{key}.")
        ]
    if isinstance(shown, list) and isinstance(stored, list) and len(shown) == len(stored):
        return [
            each
            for position, value in enumerate(shown)
            for each in missing(value, stored[position], f"{path}{position}.")
        ]
    return [] if shown == stored else [f"{path}: {shown!r}, stored {stored!r}"]


def test_kubectl_drains_a_node(plane: ControlledPlane) -> None:
    pod: Json = {
        "metadata": {"name": "bare"},
        "spec": {"nodeName": "n", "containers": [{"name": "a", "image": "a"}]},
    }
    with plane.judge() as judge:
        judge.post("/api/v1/nodes", {"metadata": {"name": "n"}})
        judge.ensure("/api/v1/namespaces/typed/serviceaccounts", {"metadata": {"name": "default"}})
        judge.post("/api/v1/namespaces/typed/pods", pod)
        told = kubectl(plane, "drain", "n", "--force", "--grace-period=0", "--timeout=20s")
        assert "drained" in told
        assert judge.get("/api/v1/namespaces/typed/pods")["items"] == []

"""The launcher itself: what the other tests of this directory stand on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.upstream.binaries import ROOT
from tests.upstream.cluster import ADMIN_TOKEN, UpstreamCluster
from tests.upstream.judge import Judge, Refused

_ORPHANS = """
import sys, time
from pathlib import Path
from tests.upstream import binaries
from tests.upstream.cluster import UpstreamCluster
with UpstreamCluster(binaries.find(), Path(sys.argv[1])) as cluster:
    print("up", flush=True)
    sys.stdin.read()
"""


def _kubectl(kubernetes: UpstreamCluster, kubeconfig: Path, *arguments: str) -> str:
    command = [kubernetes.binaries.path("kubectl"), f"--kubeconfig={kubeconfig}", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    return done.stdout


def test_kubectl_agrees_about_who_we_are(kubernetes: UpstreamCluster) -> None:
    by_certificate = _kubectl(kubernetes, kubernetes.admin_kubeconfig(), "auth", "whoami")
    assert "admin" in by_certificate
    token = kubernetes.kubeconfig("by-token", credentials={"token": ADMIN_TOKEN})
    assert "token-admin" in _kubectl(kubernetes, token, "auth", "whoami")


def test_rights_are_those_of_a_default_cluster(kubernetes: UpstreamCluster) -> None:
    with kubernetes.judge("nobody", ()) as nobody, pytest.raises(Refused, match="403"):
        nobody.get("/api/v1/pods")


def test_objects_survive_an_api_server_restart(
    kubernetes: UpstreamCluster, judge: Judge, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    judge.post(path, {"metadata": {"name": "kept"}})
    kubernetes.restart_apiserver(kill=True)
    with kubernetes.judge() as after:
        assert after.get(f"{path}/kept")["metadata"]["name"] == "kept"


def test_controllers_act_on_what_they_see(full_kubernetes: UpstreamCluster) -> None:
    admin = full_kubernetes.admin_kubeconfig()
    deployment = ("create", "deployment", "web", "--image=web", "--replicas=2")
    _kubectl(full_kubernetes, admin, *deployment)
    wait = ("wait", "--for=create", "pod", "-l", "app=web", "--timeout=25s")
    assert "condition met" in _kubectl(full_kubernetes, admin, *wait)


@pytest.mark.real
def test_no_server_outlives_a_killed_run(tmp_path: Path) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", _ORPHANS, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert run.stdout is not None
    assert run.stdin is not None
    assert run.stdout.readline() == b"up\n"
    servers = psutil.Process(run.pid).children()
    assert {server.name() for server in servers} == {"etcd", "kube-apiserver"}
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    run.stdout.close()
    run.stdin.close()
    _, alive = psutil.wait_procs(servers, timeout=20)
    assert not alive

"""`debug` on a real API server: every way to log in, and what the server makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import kvestigate
from tests.conftest import Cluster
from tests.upstream.cluster import READER_TOKEN, UpstreamCluster
from tests.upstream.judge import Judge


def context(kubeconfig: Path, *args: str) -> dict[str, Any]:
    done = kvestigate(kubeconfig, "debug", "context", "-o", "json", *args)
    assert (done.returncode, done.stderr) == (0, "")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


PLUGIN = """#!/bin/sh
cat <<END
{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
 "status": {"token": "%s"}}
END
"""


def exec_plugin(directory: Path) -> dict[str, Any]:
    script = directory / "plugin"
    script.write_text(PLUGIN % READER_TOKEN)
    script.chmod(0o755)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(script),
            "interactiveMode": "Never",
        }
    }


def test_a_client_certificate(kubernetes: UpstreamCluster) -> None:
    report = context(kubernetes.kubeconfig("jane", ("dev",)))
    assert report["authentication"].startswith("client certificate O=dev,CN=jane, expires ")
    assert report["identity"]["username"] == "jane"
    assert report["identity"]["groups"] == ["dev", "system:authenticated"]
    assert report["server_version"].startswith("v1.")


@pytest.mark.parametrize("how", ["token", "tokenFile", "exec"])
def test_other_ways_to_log_in(kubernetes: UpstreamCluster, tmp_path: Path, how: str) -> None:
    (tmp_path / "token").write_text(READER_TOKEN)
    credentials = {
        "token": {"token": READER_TOKEN},
        "tokenFile": {"tokenFile": str(tmp_path / "token")},
        "exec": exec_plugin(tmp_path),
    }[how]
    said = {
        "token": "bearer token",
        "tokenFile": "bearer token, from ",
        "exec": "credential plugin",
    }[how]
    path = kubernetes.kubeconfig("x", credentials=credentials, name=f"debug-{how}")
    report = context(path)
    assert report["authentication"].startswith(said)
    assert READER_TOKEN not in json.dumps(report)
    assert report["identity"]["username"] == "token-reader"


def test_impersonation(kubernetes: UpstreamCluster) -> None:
    report = context(kubernetes.admin_kubeconfig(), "--as", "jane", "--as-group", "dev")
    assert report["identity"]["username"] == "jane"
    assert report["identity"]["groups"] == ["dev", "system:authenticated"]


def test_a_wrong_token_is_denied(kubernetes: UpstreamCluster) -> None:
    path = kubernetes.kubeconfig("x", credentials={"token": "wrong"}, name="debug-wrong")
    done = kvestigate(path, "debug", "context")
    assert done.returncode == 4
    assert done.stderr.startswith("error: ")
    assert "authentication:   bearer token\n" in done.stdout


def test_timing_and_api(cluster: Cluster) -> None:
    done = kvestigate(cluster.admin_kubeconfig(), "debug", "timing", "--samples", "2", "-o", "json")
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert [call["problem"] for call in report["calls"]] == [""] * 5
    answer = kvestigate(cluster.admin_kubeconfig(), "debug", "api", "/readyz")
    assert answer.stdout.endswith("\n\nok\n")


def test_exec_url_of_a_pod_without_a_node(cluster: Cluster, judge: Judge, namespace: str) -> None:
    pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "a", "image": "i"}]}}
    judge.post(f"/api/v1/namespaces/{namespace}/pods", pod)
    config = cluster.admin_kubeconfig()
    done = kvestigate(config, "debug", "exec-url", "web", "-n", namespace, "-o", "json")
    assert done.returncode == 1
    handshakes = json.loads(done.stdout)["handshakes"]
    assert [handshake["accepted"] for handshake in handshakes] == [False, False]
    missing = kvestigate(config, "debug", "exec-url", "wbe", "-n", namespace)
    assert (missing.returncode, missing.stderr) == (
        5,
        "error: pods \"wbe\" not found\nhint: did you mean 'web'?\n",
    )

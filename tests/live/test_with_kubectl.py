"""What people do with a cluster, done with kubectl, here and under the real control plane."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from tests.live.conftest import NODES, Kubectl, Live, Object

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

FOREVER = "trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done"


def template(app: str, script: str, **spec: object) -> Object:
    main = {"name": "main", "image": "busybox", "command": ["/bin/sh", "-c", script]}
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [main], "terminationGracePeriodSeconds": 2, **spec},
    }


def workload(kind: str, name: str, script: str, **spec: object) -> Object:
    extra = spec.pop("pod", {})
    assert isinstance(extra, dict)
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": template(name, script, **extra),
            **spec,
        },
    }


def pod_of(kubectl: Kubectl, app: str) -> str:
    return str(kubectl.json("get", "pods", "-l", f"app={app}")["items"][0]["metadata"]["name"])


def test_a_deployment_rolls_out_rolls_on_and_rolls_back(kubectl: Kubectl) -> None:
    kubectl.apply(workload("Deployment", "web", FOREVER, replicas=3))
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    kubectl("set", "env", "deployment/web", "GENERATION=2")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert "GENERATION=2" in kubectl("exec", "deploy/web", "--", "env")
    kubectl("rollout", "undo", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert "GENERATION" not in kubectl("exec", "deploy/web", "--", "env")
    assert kubectl.json("get", "deployment", "web")["status"]["readyReplicas"] == 3


def test_a_job_finishes_and_its_logs_are_read(kubectl: Kubectl) -> None:
    spec = {
        "completions": 2,
        "parallelism": 2,
        "template": template("job", "echo done by $HOSTNAME", restartPolicy="Never"),
    }
    kubectl.apply(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": spec}
    )
    kubectl("wait", "--for=condition=Complete", "job/job", "--timeout=60s")
    assert kubectl("logs", "-l", "app=job", "--tail=-1").count("done by job-") == 2


def test_a_terminal_in_a_pod(kubectl: Kubectl) -> None:
    kubectl.apply(workload("Deployment", "shell", FOREVER))
    kubectl("rollout", "status", "deployment/shell", "--timeout=60s")
    ours, theirs = pty.openpty()
    words = [*kubectl.words, "exec", "-it", "deploy/shell", "--", "sh"]
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs) as session:
        try:
            os.close(theirs)
            os.write(ours, b"tty; echo sum $((20+22)); exit 7\n")
            seen = _read_to_end(ours)
            assert session.wait(30) == 7
        finally:
            session.kill()
            os.close(ours)
    assert re.search(r"/dev/pts/\d+\r\n", seen), seen
    assert "sum 42" in seen


def _read_to_end(terminal: int) -> str:
    seen = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # EIO: the other side is closed
            piece = b""
        if not piece:
            return seen.decode()
        seen += piece


def test_files_are_copied_in_and_out(kubectl: Kubectl, tmp_path: Path) -> None:
    volumes = [{"name": "scratch", "emptyDir": {}}]
    files = workload("Deployment", "files", FOREVER, pod={"volumes": volumes})
    main = files["spec"]["template"]["spec"]["containers"][0]
    main["volumeMounts"] = [{"name": "scratch", "mountPath": "/scratch"}]
    kubectl.apply(files)
    kubectl("rollout", "status", "deployment/files", "--timeout=60s")
    pod = pod_of(kubectl, "files")
    sent = tmp_path / "sent"
    sent.write_bytes(os.urandom(300_000))
    kubectl("cp", str(sent), f"{pod}:/scratch/there")
    kubectl("cp", f"{pod}:/scratch/there", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == sent.read_bytes()


def test_a_port_is_forwarded(kubectl: Kubectl) -> None:
    serve = "mkdir -p /tmp/$HOSTNAME; cd /tmp/$HOSTNAME; echo hello > index.html; "
    serve += "exec python3 -m http.server 8080"
    ready = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    web = workload("Deployment", "http", serve)
    web["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = ready
    kubectl.apply(web)
    kubectl("rollout", "status", "deployment/http", "--timeout=60s")
    words = [*kubectl.words, "port-forward", "deploy/http", ":8080"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as forward:
        try:
            assert forward.stdout is not None
            port = re.search(r"127\.0\.0\.1:(\d+) ->", forward.stdout.readline())
            assert port is not None
            with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/", timeout=30) as answer:
                assert answer.read() == b"hello\n"
        finally:
            forward.terminate()


def test_a_privileged_daemonset_works_on_the_nodes(kubectl: Kubectl) -> None:
    """It sees the host's files, changes its root to them, and mounts there."""
    host = {"name": "host", "hostPath": {"path": "/"}}
    access = workload("DaemonSet", "access", FOREVER, pod={"volumes": [host], "hostPID": True})
    main = access["spec"]["template"]["spec"]["containers"][0]
    main["securityContext"] = {"privileged": True}
    main["volumeMounts"] = [
        {"name": "host", "mountPath": "/host", "mountPropagation": "Bidirectional"}
    ]
    kubectl.apply(access)
    kubectl("rollout", "status", "daemonset/access", "--timeout=60s")
    pods = kubectl.json("get", "pods", "-l", "app=access")["items"]
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == NODES
    first, second = (pod["metadata"]["name"] for pod in pods)
    mount = "mkdir -p /opt/fast && mount -t tmpfs tmpfs /opt/fast && echo here > /opt/fast/mark"
    kubectl("exec", first, "--", "chroot", "/host", "sh", "-c", mount)
    assert kubectl("exec", first, "--", "cat", "/host/opt/fast/mark") == "here\n"
    assert "tmpfs" in kubectl("exec", first, "--", "chroot", "/host", "df", "/opt/fast")
    kubectl("exec", second, "--", "test", "!", "-e", "/host/opt/fast")
    kubectl("exec", first, "--", "chroot", "/host", "umount", "/opt/fast")


def test_a_drain_respects_the_budget(kubectl: Kubectl) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "guarded"}},
    }
    pod = {"topologySpreadConstraints": [spread]}
    kubectl.apply(
        workload("Deployment", "guarded", FOREVER, replicas=2, pod=pod),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "guard"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "guarded"}}},
        },
    )
    kubectl("rollout", "status", "deployment/guarded", "--timeout=60s")
    kubectl("wait", "pdb/guard", "--for=jsonpath={.status.currentHealthy}=2", "--timeout=30s")
    drain = ["drain", NODES[0], "--ignore-daemonsets", "--force", "--delete-emptydir-data"]
    drain.append("--pod-selector=app=guarded")
    try:
        said = kubectl(*drain, "--timeout=3s", code=1)
        assert "violate the pod's disruption budget" in said
        kubectl("patch", "pdb/guard", "--type=merge", '-p={"spec":{"minAvailable":1}}')
        kubectl("wait", "pdb/guard", "--for=jsonpath={.status.disruptionsAllowed}=1")
        assert "drained" in kubectl(*drain, "--timeout=60s")
    finally:
        kubectl("uncordon", NODES[0])


def test_pods_outlive_the_agent(live: Live, kubectl: Kubectl) -> None:
    kubectl.apply(workload("Deployment", "lasting", f"date +%s.%N; {FOREVER}", replicas=2))
    kubectl("rollout", "status", "deployment/lasting", "--timeout=60s")
    before = kubectl.json("get", "pods", "-l", "app=lasting")["items"]
    said = {}
    for pod in before:
        with closing(kubectl.lines(pod["metadata"]["name"])) as lines:
            said[pod["metadata"]["name"]] = next(lines)
    live.crash()
    kubectl("wait", "--for=condition=Ready", "pod", "-l", "app=lasting", "--timeout=60s")
    after = kubectl.json("get", "pods", "-l", "app=lasting")["items"]
    assert [it["metadata"]["uid"] for it in after] == [it["metadata"]["uid"] for it in before]
    for pod in after:
        name = pod["metadata"]["name"]
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
        assert kubectl("logs", name) == said[name]
        assert kubectl("exec", name, "--", "echo", "alive") == "alive\n"

"""Fan-out to the hosts of nodes, by the DaemonSet that any cluster would be given."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvestigate.node_access.reach import manifest
from tests.live.conftest import NODES, Kubectl, Live

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

NAME = "direct-node-access"


@pytest.fixture
def hosts(live: Live) -> Live:
    kubectl = Kubectl(live.kubeconfig, "default")
    kubectl("apply", "-f", "-", given=manifest())
    kubectl("rollout", "status", f"daemonset/{NAME}", "--timeout=60s")
    return live


def fanout(live: Live, *words: str, code: int = 0) -> dict[str, dict[str, Any]]:
    kubeconfig = f"--kubeconfig={live.kubeconfig}"
    command = [sys.executable, "-m", "kvestigate", kubeconfig, "fanout", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
    assert done.returncode == code, done.stdout + done.stderr
    return {it["target"]["name"]: it for it in json.loads(done.stdout)["results"]}


def test_commands_and_files_reach_every_host(hosts: Live, tmp_path: Path) -> None:
    aim = ("--target", "nodes", "-o", "json")
    said = fanout(hosts, "exec", *aim, "--", "uname", "-n")
    assert {name: it["stdout"] for name, it in said.items()} == {it: f"{it}\n" for it in NODES}
    local = tmp_path / "motd"
    local.write_bytes(bytes(100_000))
    understood = "--i-understand-this-writes-to-hosts"
    fanout(hosts, "push", str(local), "/opt/motd", *aim, understood)
    fanout(hosts, "fetch", "/opt/motd", str(tmp_path / "out"), *aim)
    assert [(tmp_path / "out" / name / "motd").read_bytes() for name in NODES] == [
        bytes(100_000)
    ] * 2


def test_what_takes_too_long_is_ended(hosts: Live) -> None:
    aim = ("exec", "--target", "nodes", "-o", "json")
    stuck = ("sh", "-c", "exec 9>/opt/held; flock 9; sleep 5432")
    ended = fanout(hosts, *aim, "--timeout", "1s", "--", *stuck, code=1)
    assert {it["outcome"] for it in ended.values()} == {"timeout"}
    fanout(hosts, *aim, "--", "flock", "--timeout", "20", "/opt/held", "true")

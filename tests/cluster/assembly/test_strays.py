"""A cluster whose state directory was removed ends itself; until then `status` finds it."""

from __future__ import annotations

import os
import select
import shutil
import sys
from pathlib import Path

import pytest

from kvestigate.cluster.assembly.clusters import ClusterStatus, status, up
from kvestigate.cluster.assembly.directory import ClusterDirectory, Shape, clusters_directory
from kvestigate.cluster.assembly.process import DAEMON, strays
from kvestigate.cluster.assembly.rendering import status_blocks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="waits by a pidfd")

NAME = "lost"


def test_a_cluster_without_its_directory_is_found_and_ends(tmp_path: Path) -> None:
    state = {"XDG_STATE_HOME": str(tmp_path / "state"), "KUBECONFIG": str(tmp_path / "kubeconfig")}
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **state}
    up(environ, NAME, Shape(host="simulated", nodes=1))
    cluster = ClusterDirectory(clusters_directory(environ), NAME)
    pid = cluster.read().pid
    process = os.pidfd_open(pid)
    try:
        shutil.rmtree(cluster.path)
        found = [each for each in status(environ) if each.stray_pid == pid]
        assert [(each.name, each.running) for each in found] == [(NAME, True)]
        ended, _, _ = select.select([process], [], [], 30)
    finally:
        os.close(process)
    assert ended
    assert all(each.stray_pid != pid for each in status(environ))


def test_only_daemons_without_their_directory_are_strays(tmp_path: Path) -> None:
    kept = tmp_path / "clusters" / "kept"
    kept.mkdir(parents=True)
    (kept / "cluster.json").write_text("{}")
    commands = {
        1: ["python", "-m", DAEMON, str(kept), "5"],
        2: ["python", "-m", DAEMON, str(tmp_path / "clusters" / "gone"), "5"],
        3: ["vi", DAEMON],
        4: ["python", "-m", DAEMON],
    }
    for pid, words in commands.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cmdline").write_bytes("\0".join(words).encode() + b"\0")
    assert [(stray.pid, Path(stray.directory).name) for stray in strays(tmp_path)] == [(2, "gone")]


def test_a_stray_is_shown_with_the_way_to_stop_it() -> None:
    shown = status_blocks([ClusterStatus("lost", True, "", "", 0, "", 0, "", 4711)])
    assert "kill 4711" in str(shown)

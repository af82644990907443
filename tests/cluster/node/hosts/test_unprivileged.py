"""The node suite once more, as a user with no rights."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

NODE = Path(__file__).parents[1]
NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--")
SUITES = (
    "hosts/test_hosts.py",
    "hosts/test_namespace.py",
    "agent/test_agent.py",
    "net/test_network.py",
    "pods/test_pod_behaviour.py",
)


def interpreter() -> str:
    """A Python of our version that a stranger may start: root's own home hides its programs."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (os.path.realpath(sys.executable), f"/usr/bin/{version}"):
        asked = [*AS_NOBODY, "sh", "-c", f"exec {candidate} -c ''"]
        if subprocess.run(asked, capture_output=True, check=False).returncode == 0:
            return candidate
    pytest.fail(f"no {version} that an unprivileged user can start")


@pytest.mark.workflow
@pytest.mark.timeout(900)  # for five suites; four have taken 265 s on a busy machine
def test_the_suite_passes_without_privileges() -> None:
    if os.geteuid() != 0:
        pytest.skip("this whole run is unprivileged already")
    if shutil.which("setpriv") is None:
        pytest.fail("setpriv (util-linux) is needed to give up privileges")
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        os.chown(home, NOBODY, NOBODY)
        pytest_arguments = ["-q", "-p", "no:cacheprovider", f"--basetemp={home}/tests"]
        done = subprocess.run(
            [
                *AS_NOBODY, interpreter(), "-B", "-m", "pytest", *pytest_arguments,
                *(str(NODE / suite) for suite in SUITES),
            ],
            cwd=NODE.parents[2],
            env={
                "PATH": os.environ["PATH"],
                "HOME": home,
                "TMPDIR": home,
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            },
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr

"""The node suite once more, as a user with no rights."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NOBODY = 65534
SUITES = ("test_hosts.py", "test_namespace_host.py", "test_agent.py")


@pytest.mark.timeout(300)
def test_the_suite_passes_without_privileges() -> None:
    if os.geteuid() != 0:
        pytest.skip("this whole run is unprivileged already")
    if shutil.which("setpriv") is None:
        pytest.fail("setpriv (util-linux) is needed to give up privileges")
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        os.chown(home, NOBODY, NOBODY)
        done = subprocess.run(
            [
                "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                "--inh-caps=-all", "--",
                sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider",
                f"--basetemp={home}/tests", *(str(HERE / suite) for suite in SUITES),
            ],
            cwd=HERE.parents[1],
            env={**os.environ, "HOME": home, "TMPDIR": home},
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr

"""What a short command does not import: its start is the time that people wait."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CODE = """
import sys
from kvestigate.cli.main import KVESTIGATE_PROGRAM, run
code = run(KVESTIGATE_PROGRAM, ["pods"])
print(code, *sorted(sys.modules))
"""
KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters:
- name: gone
  cluster:
    server: http://127.0.0.1:1
contexts:
- name: gone
  context:
    cluster: gone
    user: me
current-context: gone
users:
- name: me
  user:
    token: abc
"""
NEVER_USED = {
    "yaml",
    "tempfile",
    "shutil",
    "rich",
    "pydantic",
    "kvestigate.client.auth.execplugin",
    "kvestigate.client.auth.oidc",
    "kvestigate.client.discovery",
    "kvestigate.inspection.describe",
    "kvestigate.inspection.logs",
    "kvestigate.kube.python_scalars",
    "kvestigate.kube.selectors",
    "kvestigate.render.yaml_text",
    "kvestigate.snapshot.exporters",
    "kvestigate.snapshot.listings",
}


def test_pods_imports_what_it_uses(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(KUBECONFIG)
    environ = {"KUBECONFIG": str(config), "HOME": str(tmp_path), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=environ
    )
    code, *modules = done.stdout.split()
    assert code == "3", done.stderr
    assert "kvestigate.inspection.pods" in modules
    assert not NEVER_USED.intersection(modules)

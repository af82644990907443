"""A cluster on which the programs of task files are found: `pip`, `python` and what they run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import yaml

from kvestigate.cluster.assembly import process
from kvestigate.cluster.assembly.directory import clusters_directory, known

HERE = Path(__file__).parent
K8S_CLI = Path(sys.executable).with_name("k8s-cli")
NODES = 4
SCENARIO = {
    "apiVersion": "kvestigate.dev/v1",
    "kind": "Scenario",
    "metadata": {"name": "training"},
    "spec": {
        "summary": "machines for training",
        "nodes": [
            {
                "count": NODES,
                "host": "directory",
                "capacity": {"cpu": 96, "memory": "1Ti"},
                "gpus": {"model": "H100", "count": 8},
            }
        ],
        "workloads": [
            {
                # What a task file means that says where its ranks meet.
                "manifests": [
                    {
                        "apiVersion": "v1",
                        "kind": "Service",
                        "metadata": {"name": "master-service"},
                        "spec": {
                            "selector": {"task-name": "distributed-training", "node-idx": "0"},
                            "ports": [{"port": 29500}],
                        },
                    }
                ]
            }
        ],
    },
}
PYTHON = """\
#!/bin/sh
cd "{image}" && PYTHONPATH="$HOME/site" exec "{python}" -S "$@"
"""
PIP = """\
#!/bin/sh
[ "$1" = install ] && shift || exit 2
for name; do
  "{python}" -S -m zipfile -e "{index}/$name.whl" "$HOME/site" || exit 1
  echo "Successfully installed $name"
done
"""


class Scene:
    """Starts the cluster, and has the commands of a shell for it."""

    def __init__(self, home: Path) -> None:
        self._home = home
        (home / "scenario.yaml").write_text(yaml.safe_dump(SCENARIO))
        self._environ = {
            "PATH": f"{K8S_CLI.parent}:{os.environ['PATH']}",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CONFIG_HOME": str(home / "config"),
        }

    def run(self, commands: str) -> str:
        """What a shell prints for them."""
        done = subprocess.run(
            ["bash", "-e", "-c", commands],
            cwd=self._home,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def prepare(self) -> None:
        """Put in place what the tasks run."""
        shutil.copytree(HERE / "image", self._home / "image")
        self._index()
        self._programs()
        # Or a task would change what is installed on this machine.
        which = "{run: command -v pip}"
        said = self.run(f"k8s-cli auth login stagehand; k8s-cli jobs submit - <<< '{which}'")
        assert f"{self._home}/state" in said, said

    def install_torch(self) -> None:
        """Into the image, so that no package has to be fetched."""
        shutil.copytree(HERE / "torch", self._home / "image" / "torch")

    def __enter__(self) -> Scene:
        self.run("kvestigate up --scenario scenario.yaml")
        return self

    def __exit__(self, *_: object) -> None:
        for each in known(clusters_directory(self._environ)):
            process.stop(each)

    def _index(self) -> None:
        """Where packages come from."""
        index = self._home / "index"
        index.mkdir()
        for name in ("torch", "numpy", "transformers", "datasets"):
            with zipfile.ZipFile(index / f"{name}.whl", "w") as wheel:
                wheel.writestr(f"{name}-1.0.dist-info/METADATA", f"Name: {name}\n")
                for path in (HERE / name).rglob("*.py"):
                    wheel.write(path, path.relative_to(HERE))

    def _programs(self) -> None:
        [cluster] = known(clusters_directory(self._environ))
        values = {
            "image": self._home / "image",
            "index": self._home / "index",
            "python": sys.executable,
        }
        for number in range(1, NODES + 1):
            programs = cluster.nodes / f"node-{number}" / "rootfs" / "usr" / "bin"
            for name, text in (("python", PYTHON), ("pip", PIP)):
                (programs / name).write_text(text.format(**values))
                (programs / name).chmod(0o755)

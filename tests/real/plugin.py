"""A credential plugin for tests: a real executable that answers from a script and counts runs."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SOURCE = """#!{python}
import json, os, pathlib
home = pathlib.Path({home!r})
answers = json.loads((home / "answers.json").read_text())
with (home / "runs").open("a") as runs:
    runs.write(os.environ["KUBERNETES_EXEC_INFO"] + "\\n")
run = len((home / "runs").read_text().splitlines()) - 1
print(json.dumps({{
    "apiVersion": "client.authentication.k8s.io/v1",
    "kind": "ExecCredential",
    "status": answers[min(run, len(answers) - 1)],
}}))
"""


@dataclass(frozen=True, slots=True)
class Plugin:
    home: Path

    @property
    def runs(self) -> list[dict[str, Any]]:
        """What each run was told in KUBERNETES_EXEC_INFO."""
        record = self.home / "runs"
        lines = record.read_text().splitlines() if record.exists() else []
        return [json.loads(line) for line in lines]

    def user(self, **more: Any) -> dict[str, Any]:
        """The user entry of a kubeconfig."""
        entry = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(self.home / "plugin"),
            "interactiveMode": "Never",
        }
        return {"exec": entry | more}


def write_plugin(home: Path, *answers: dict[str, Any]) -> Plugin:
    """One that gives the answers in turn, the last one for ever."""
    (home / "answers.json").write_text(json.dumps(answers))
    program = home / "plugin"
    program.write_text(_SOURCE.format(python=sys.executable, home=str(home)))
    program.chmod(0o755)
    return Plugin(home)

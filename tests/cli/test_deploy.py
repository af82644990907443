"""`deploy` and `delete` show their plan, and act when both flags say so."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import MEANT, Invoke, Served

APP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: VALUE}
---
apiVersion: v1
kind: Namespace
metadata: {name: NEW}
"""


@pytest.fixture
def on(served: Served) -> tuple[str, str]:
    return ("--kubeconfig", str(served.data / "admin.kubeconfig"))


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "app.yaml"
    path.write_text(APP.replace("NEW", "web").replace("VALUE", "fast"))
    return path


def test_a_deployment_from_plan_to_deletion(invoke: Invoke, on: tuple[str, str], app: Path) -> None:
    plan = invoke("deploy", str(app), *on)
    assert plan.code == 0
    assert "would do: 2 create" in plan.out
    assert "add --apply --i-understand-this-modifies-cluster" in plan.err

    done = invoke("deploy", str(app), *on, *MEANT)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("2 created")

    app.write_text(app.read_text().replace("fast", "slow"))
    changed = invoke("deploy", str(app), *on, *MEANT, "-o", "json")
    assert changed.code == 0
    objects = json.loads(changed.out)["objects"]
    assert [(it["name"], it["outcome"]) for it in objects] == [
        ("web", "unchanged"),
        ("settings", "changed"),
    ]
    assert objects[1]["changes"] == [{"path": "data.mode", "before": "fast", "after": "slow"}]

    same = invoke("deploy", str(app), *on)
    assert (same.code, same.err) == (0, "")  # there is nothing to confirm
    assert same.out.startswith("would do: 2 unchanged")

    half = invoke("delete", "cm", "settings", *on, "--apply")
    assert half.code == 2
    assert "would delete ConfigMap settings in namespace default" in half.out
    assert "add --i-understand-this-modifies-cluster" in half.err

    gone = invoke("delete", "cm", "settings", *on, *MEANT)
    assert (gone.code, gone.out) == (0, "ConfigMap settings in namespace default was deleted\n")
    assert invoke("delete", "cm", "settings", *on, *MEANT).code == 5


def test_standard_input(
    invoke: Invoke, on: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-pipe}\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    plan = invoke("deploy", "-", *on)
    assert (plan.code, "from-pipe" in plan.out) == (0, True)


def test_one_object_that_fails_is_the_exit_code(
    invoke: Invoke, on: tuple[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {'a b': c}\n")
    refused = invoke("deploy", str(path), *on, *MEANT)
    assert refused.code == 1
    assert refused.out.startswith("nothing was applied: 1 of 1 objects would fail")


def test_a_plan_that_would_fail_asks_for_no_confirmation(
    invoke: Invoke, on: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "bad.yaml").write_text("apiVersion: v1\nkind: Wibble\nmetadata: {name: x}\n")
    plan = invoke("deploy", str(tmp_path / "bad.yaml"), *on)
    assert (plan.code, plan.err) == (1, "")
    assert "nothing was applied: 1 of 1 objects would fail" in plan.out


def test_a_conflict_names_the_owner(invoke: Invoke, on: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "deployment.yaml"
    path.write_text("""
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
""")
    assert invoke("deploy", str(path), *on, *MEANT).code == 0
    assert invoke("scale", "web", "3", *on, *MEANT).code == 0
    refused = invoke("deploy", str(path), *on, *MEANT)
    assert refused.code == 6
    assert "spec.replicas" in refused.out
    taken = invoke("deploy", str(path), *on, *MEANT, "--force-conflicts")
    assert taken.code == 0
    assert invoke("delete", "deploy", "web", *on, *MEANT).code == 0

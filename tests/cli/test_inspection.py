"""Looking at things in a cluster that really runs them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kvestigate.client.access import AccessOptions, resolve
from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.client.connect import connect
from kvestigate.kube import builtins
from tests.cli.broken import FAULTS, OBJECTS
from tests.cli.conftest import Invoke, Outcome

PATIENCE = 40.0

Run = Callable[..., Outcome]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a cluster in which the faults have come to light."""
    home = tmp_path_factory.mktemp("inspection")
    config = home / "config"
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "KUBECONFIG": str(config),
    }

    def kvestigate(*args: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "kvestigate", *args], env=environ, check=True, timeout=60
        )

    kvestigate("up", "--nodes", "2", "--host", "directory")
    try:
        asyncio.run(_load(config))
        yield config
    finally:
        kvestigate("down", "--delete")


async def _load(config: Path) -> None:
    async with connect(resolve(AccessOptions(kubeconfig=str(config)), {}, None)) as api:
        for kind, body in OBJECTS:
            await api.create(builtins.resource(kind), body)
        async with asyncio.timeout(PATIENCE):
            await _until(api, "pods", _come_to_light)
            await _until(api, "poddisruptionbudgets", _budget_counted)
            await _until(api, "endpointslices", _endpoints_ready)


async def _until(api: Api, kind: str, holds: Callable[[dict[str, Any]], bool]) -> None:
    resource = builtins.resource(kind)
    page = await api.list(resource, Selection("default"))
    seen = {it["metadata"]["name"]: it for it in page.items}
    version = page.metadata.resource_version
    if holds(seen):
        return
    async with api.watch(resource, Selection("default"), resource_version=version) as events:
        async for event in events:
            seen[event.object["metadata"]["name"]] = event.object
            if holds(seen):
                return


def _come_to_light(pods: dict[str, Any]) -> bool:
    words = json.dumps(list(pods.values()))
    running = sum(it["status"].get("phase") == "Running" for it in pods.values())
    return "CrashLoopBackOff" in words and "Unschedulable" in words and running >= 4


def _budget_counted(budgets: dict[str, Any]) -> bool:
    return bool(budgets["web"].get("status", {}).get("currentHealthy") == 2)


def _endpoints_ready(slices: dict[str, Any]) -> bool:
    counts = [
        sum(bool(it["conditions"].get("ready")) for it in one.get("endpoints") or ())
        for one in slices.values()
        if one["metadata"]["labels"].get("kubernetes.io/service-name") == "web"
    ]
    return sum(counts) == 2


@pytest.fixture
def web(cluster: Path, invoke: Invoke) -> str:
    """The name of a pod that runs."""
    outcome = invoke("pods", "-l", "app=web", "-o", "json", "--kubeconfig", str(cluster))
    name: str = json.loads(outcome.out)["pods"][0]["name"]
    return name


def test_namespaces_and_pods(invoke: Invoke, cluster: Path) -> None:
    config = ("--kubeconfig", str(cluster))
    found = json.loads(invoke("namespaces", "-o", "json", *config).out)["namespaces"]
    assert {it["name"]: it["pods"] for it in found}["default"] == 5
    assert invoke("namespaces", *config).out.startswith("NAME")

    pods = json.loads(invoke("pods", "-n", "default", "-o", "json", *config).out)["pods"]
    status = {it["name"].split("-")[0]: it["status"] for it in pods}
    assert (status["web"], status["huge"]) == ("Running", "Pending")
    assert invoke("pods", *config).out.startswith("NAMESPACE")
    assert invoke("pods", "-n", "default", *config).out.startswith("NAME ")
    assert invoke("pods", "-A", "-n", "default", *config).out.startswith("NAMESPACE")
    assert invoke("pods", "-n", "kube-public", *config).out == "no pods in namespace kube-public\n"
    none = invoke("pods", "-l", "app=none", *config).out
    assert none == "no pod matches app=none in any namespace\n"
    wrong = invoke("pods", "-l", "a b", *config)
    assert wrong.code == 2
    assert "label selector 'a b', character 3" in wrong.err


def test_every_planted_fault_is_found_and_nothing_else(invoke: Invoke, cluster: Path) -> None:
    outcome = invoke("audit", "-o", "json", "--kubeconfig", str(cluster), "--fail-on", "critical")
    assert outcome.code == 1, outcome.err
    found = json.loads(outcome.out)["findings"]
    assert {
        (it["rule"], it["subject"]["kind"], it["subject"]["name"].split("-")[0]) for it in found
    } == FAULTS
    ranks = [it["severity"] for it in found]
    assert ranks == sorted(ranks)  # critical before warning, by luck of the alphabet
    said = {it["rule"]: it["evidence"] for it in found}
    assert "exit code 3 (Error)" in said["crash-loop"]
    assert said["crash-loop"].endswith("last log line: about to fail")
    assert "No node fits: all 2 nodes have too little free CPU. Pending since" in said["pending"]


def test_describe(invoke: Invoke, cluster: Path, web: str) -> None:
    config = ("--kubeconfig", str(cluster))
    pod = invoke("describe", "pod", web, *config).out
    assert "status:            Running" in pod
    assert "Successfully assigned" in pod
    assert "status:            Running" in invoke("describe", f"pod/{web}", *config).out
    deployment = invoke("describe", "deploy", "web", *config).out
    assert "2 desired, 2 updated, 2 ready, 2 available" in deployment
    assert web in deployment
    assert web in invoke("describe", "service", "web", *config).out
    node = invoke("describe", "node", "node-1", *config).out
    assert "kubernetes.io/hostname" in node
    assert "kubelet:" in node
    secret = invoke("describe", "secret", "pw", *config).out
    assert "data.password" in secret
    assert "(7 bytes)" in secret
    assert "spec.rules[0].host" in invoke("describe", "ing", "front", *config).out


@pytest.mark.parametrize(
    ("args", "code", "message", "hint"),
    [
        (("describe", "deployment", "wbe"), 5, "not found", "did you mean 'web'?"),
        (("describe", "pod", "web"), 5, "not found", "did you mean 'web-"),
        (("logs", "crash"), 5, "not found", "did you mean 'crash-"),
        (("describe", "deploiment", "web"), 2, "no resource type", "did you mean deployments"),
        (("describe", "wibble", "web"), 2, "no resource type", "api-resources` lists"),
        (("describe", "pod"), 2, "missing argument 'NAME'", "`pod/web-0`"),
        (("describe", "pod/"), 2, "missing argument 'NAME'", "`pod/web-0`"),
        (("describe", "pod", "a/b"), 2, "'a/b' is not a valid name of a pod", ""),
        (("describe", "pod", ".."), 2, "'..' is not a valid name of a pod", ""),
        (
            ("describe", "svc/web", "-n", "kube-public"),
            5,
            "not found",
            "the service is in namespace 'default': add -n default",
        ),
        (("describe", "node", "zzz"), 5, "not found", "none with a similar name"),
        (("logs", "zzz"), 5, "not found", "namespace 'default' has 5 pods"),
        (("logs", "configmap/kube-root-ca.crt"), 2, "selects no pods", "give a pod"),
        (("exec", "deployment/huge", "--", "true"), 2, "has no running pod", "pods"),
    ],
)
def test_a_mistake_is_named(
    invoke: Invoke, cluster: Path, args: tuple[str, ...], code: int, message: str, hint: str
) -> None:
    head, *rest = args
    outcome = invoke(head, "--kubeconfig", str(cluster), *rest)
    assert outcome.code == code, outcome.err
    assert message in outcome.err
    assert hint in outcome.err


def test_logs(invoke: Invoke, cluster: Path, web: str) -> None:
    config = ("--kubeconfig", str(cluster))
    assert invoke("logs", web, *config).out == "hello\n"
    assert invoke("logs", web, "--tail", "0", *config).out == ""
    both = invoke("logs", "deployment/web", *config).out.splitlines()
    assert len(both) == 2
    assert f"[{web}/main] hello" in both
    lines = json.loads(invoke("logs", f"pod/{web}", "-o", "json", *config).out)["lines"]
    assert lines == [{"source": {"pod": web, "container": "main"}, "text": "hello"}]
    wrong = invoke("logs", web, "-c", "mian", *config)
    assert (wrong.code, "did you mean 'main'?" in wrong.err) == (2, True)
    assert invoke("logs", "deploy/crash", "--previous", *config).out == "about to fail\n"
    unplaced = invoke("logs", "deploy/huge", *config)
    assert (unplaced.code, unplaced.out) == (0, "")
    assert "is not scheduled and has no log" in unplaced.err


def test_following_shows_what_is_said_later(cluster: Path) -> None:
    command = [sys.executable, "-m", "kvestigate", "--kubeconfig", str(cluster)]
    with subprocess.Popen(
        [*command, "logs", "-f", "talker"], stdout=subprocess.PIPE, text=True
    ) as following:
        try:
            assert following.stdout is not None
            process = following.stdout.readline().strip()
            kill = [*command, "exec", "talker", "--", "kill", "-USR1", process]
            assert subprocess.run(kill, check=False, timeout=30).returncode == 0
            assert following.stdout.readline() == "later\n"
        finally:
            following.kill()


def test_exec_passes_streams_and_exit_codes_on(
    invoke: Invoke, cluster: Path, web: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = ("--kubeconfig", str(cluster))
    script = "echo out; echo err >&2; exit 7"
    outcome = invoke("exec", web, *config, "--", "sh", "-c", script)
    assert (outcome.code, outcome.out, outcome.err) == (7, "out\n", "err\n")
    assert invoke("exec", "deployment/web", *config, "--", "true").code == 0
    (tmp_path / "input").write_text("piped in\n")
    with (tmp_path / "input").open() as given:
        monkeypatch.setattr(sys, "stdin", given)
        outcome = invoke("exec", "-i", web, *config, "--", "cat")
    assert (outcome.code, outcome.out) == (0, "piped in\n")


def test_exec_through_kubectl_says_the_same_in_its_words(
    invoke: Invoke, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = home / "kubectl"
    fake.write_text(f'#!/bin/sh\nfor word; do echo "$word"; done > {home}/words\nexit 9\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(home), prepend=os.pathsep)
    outcome = invoke(
        "exec", "web-0", "-n", "shop", "-c", "x", "--transport", "kubectl", "--", "ls", "-l"
    )
    assert outcome.code == 9, outcome.err
    assert (home / "words").read_text().split("\n")[:-1] == [
        "--namespace=shop",
        "exec",
        "--container=x",
        "web-0",
        "--",
        "ls",
        "-l",
    ]
    monkeypatch.setenv("PATH", str(home / "empty"))
    missing = invoke("exec", "web-0", "--transport", "kubectl", "--", "ls")
    assert (missing.code, "kubectl is not on the PATH" in missing.err) == (2, True)


def test_a_terminal_is_for_typing(invoke: Invoke) -> None:
    outcome = invoke("exec", "-t", "web-0", "--", "sh")
    assert (outcome.code, "write -it" in outcome.err) == (2, True)

"""`audit` and `report` on a cluster that is really there."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import pytest

from kvestigate.cluster.assembly import process
from kvestigate.cluster.assembly.directory import clusters_directory, known
from kvestigate.http.message import Request, Response, Upgrade
from tests.cli.conftest import Invoke, Start, answering, kubeconfig


@pytest.fixture
def fleet(home: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two simulated nodes with four GPUs each."""
    state = home / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    up = invoke("up", "--name", "fleet", "--nodes", "2", "--host", "simulated", "--gpus", "4")
    assert up.code == 0, up.err
    yield
    for cluster in known(clusters_directory({"XDG_STATE_HOME": str(state)})):
        process.stop(cluster)


@pytest.mark.usefixtures("fleet")
def test_an_audit_of_a_clean_cluster(invoke: Invoke, home: Path) -> None:
    outcome = invoke("audit", "--json", "now.json", "--sarif", "now.sarif", "--html", "now.html")
    assert outcome.code == 0, outcome.err
    assert outcome.err == ""
    assert "No problems found" in outcome.out
    assert "forbidden" not in outcome.out
    document = json.loads((home / "now.json").read_text())
    assert document["schema"] == "kvestigate.audit/v1"
    assert document["captured_at"].endswith("Z")
    assert set(document["reports"]) == {
        "nodes",
        "metrics",
        "cost",
        "gpu",
        "workloads",
        "network",
        "storage",
    }
    assert document["reports"]["nodes"]["total"]["gpus"] == {"requested": 0, "allocatable": 8}
    assert document["findings"] == []

    same = invoke("audit", "diff", "now.json", "now.json")
    assert (same.code, "no changes" in same.out) == (0, True)

    assert invoke("audit", "--fail-on", "warning").code == 0
    assert (home / "now.html").read_text().startswith("<!doctype html>")
    sarif = json.loads((home / "now.sarif").read_text())
    assert sarif["version"] == "2.1.0"

    why = invoke("why", "node/node-1")
    assert (why.code, "Nothing wrong was found" in why.out) == (0, True)
    missing = invoke("why", "pod", "web-0")
    assert (missing.code, "web-0" in missing.err) == (5, True), missing.err

    printed = invoke("audit", "-o", "sarif")
    assert (printed.code, json.loads(printed.out)["version"]) == (0, "2.1.0")
    assert json.loads(invoke("-o", "json", "audit").out)["findings"] == []

    within = json.loads(invoke("audit", "-n", "kube-system", "-o", "json").out)
    assert within["namespace"] == "kube-system"
    assert {it["namespace"] for it in within["reports"]["network"]["services"]} <= {"kube-system"}
    assert "Only namespace kube-system was read" in invoke("audit", "-n", "kube-system").out
    for command in (("audit",), ("report", "run", "nodes"), ("pods",)):
        lost = invoke(*command, "-n", "kube-sytem")
        assert (lost.code, "did you mean 'kube-system'?" in lost.err) == (5, True)

    one = json.loads(invoke("report", "run", "gpu", "-o", "json").out)
    assert one["schema"] == "kvestigate.report/v1"
    assert one["report"] == document["reports"]["gpu"]
    assert "H100" in invoke("report", "run", "gpu").out


def test_the_reports_are_listed_without_a_cluster(invoke: Invoke) -> None:
    outcome = invoke("report", "list", "-o", "json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["reports"][0]["name"] == "nodes"


def test_a_mistyped_report_needs_no_cluster(invoke: Invoke) -> None:
    outcome = invoke("report", "run", "gpus")
    assert (outcome.code, outcome.err.splitlines()[0]) == (2, "error: there is no report 'gpus'")
    assert "did you mean 'gpu'?" in outcome.err


def test_where_nothing_may_be_listed_the_audit_says_what(
    invoke: Invoke, start: Start, home: Path
) -> None:
    refusal = {"kind": "Status", "reason": "Forbidden", "message": "no", "code": 403}
    (home / "config").write_text(kubeconfig(start(answering(403, refusal)).url))
    outcome = invoke("audit", "--kubeconfig", "config")
    assert outcome.code == 4, outcome.err
    nodes = outcome.out.partition("== nodes ==")[2].partition("==")[0]
    assert nodes.strip().split("\n") == [
        "Listing nodes is forbidden",
        "Listing pods is forbidden",
        "Listing resourceslices.resource.k8s.io is forbidden",
        "Listing resourceclaims.resource.k8s.io is forbidden",
    ]
    assert "Listing pods is forbidden: no" in outcome.out
    assert "Listing deployments.apps is forbidden" in outcome.out
    assert "Not checked: node-not-ready, " in outcome.out
    assert "No problems found" not in outcome.out


def test_nothing_seen_is_not_nothing(invoke: Invoke, start: Start, home: Path) -> None:
    none = {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}
    refusal = {"kind": "Status", "reason": "Forbidden", "message": "no", "code": 403}

    async def only_pods(request: Request) -> Response | Upgrade:
        seen = request.path.endswith("/api/v1/pods")
        return await (answering(200, none) if seen else answering(403, refusal))(request)

    (home / "config").write_text(kubeconfig(start(only_pods).url))
    network = invoke("report", "run", "network", "--kubeconfig", "config").out
    assert "Listing services is forbidden" in network
    assert "Services: unknown (they could not be listed)" in network
    refused = invoke("namespaces", "--kubeconfig", "config")
    assert (refused.code, refused.out) == (4, "")
    assert refused.err.startswith("error: no\nhint: `kvestigate --kubeconfig config debug context`")


def test_a_difference_has_no_findings_to_scan(invoke: Invoke) -> None:
    outcome = invoke("audit", "-o", "sarif", "diff", "a.json", "b.json")
    assert (outcome.code, outcome.err.splitlines()[0]) == (
        2,
        "error: -o sarif: `audit diff` has no SARIF output",
    )


def test_a_file_that_is_no_audit_is_named(invoke: Invoke, home: Path) -> None:
    (home / "a.json").write_text("{}")
    outcome = invoke("audit", "diff", "a.json", "b.json")
    assert outcome.code == 2
    assert outcome.err.startswith("error: a.json: schema is None")
    (home / "a.json").unlink()
    missing = invoke("audit", "diff", "a.json", "b.json")
    assert (missing.code, missing.err.splitlines()[0]) == (
        2,
        "error: a.json: cannot be read: No such file or directory",
    )


def test_what_is_watched_is_a_line_for_programs_and_a_post_for_others(
    start: Start, home: Path
) -> None:
    crashing = {
        "metadata": {"name": "web-0", "namespace": "shop"},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
            ],
        },
    }
    posted: Queue[bytes] = Queue()

    async def answer(request: Request) -> Response | Upgrade:
        if request.method == "POST":
            posted.put(request.body)
            return await answering(200, {})(request)
        items = [crashing] if request.path.endswith("/api/v1/pods") else []
        return await answering(200, {"metadata": {"resourceVersion": "1"}, "items": items})(request)

    server = start(answer)
    (home / "config").write_text(kubeconfig(server.url))
    command = [sys.executable, "-m", "kvestigate", "audit", "--watch", "--no-logs", "-o", "json"]
    flags = ["--kubeconfig", str(home / "config"), "--slack", f"{server.url}/hook"]
    with subprocess.Popen([*command, *flags], stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        change = json.loads(watching.stdout.readline())
        said = json.loads(posted.get(timeout=30))
        watching.send_signal(signal.SIGINT)
        watching.wait(timeout=30)
    assert (change["what"], change["finding"]["rule"]) == ("appeared", "crash-loop")
    assert "Pod shop/web-0 (crash-loop)" in said["text"]


@pytest.mark.parametrize("wrong", [("--watch", "--json", "x"), ("--slack", "http://127.0.0.1")])
def test_options_of_one_look_and_of_watching_do_not_mix(
    invoke: Invoke, wrong: tuple[str, ...]
) -> None:
    outcome = invoke("audit", *wrong)
    assert outcome.code == 2, outcome.err
    assert wrong[0] in outcome.err


@pytest.mark.parametrize("given", ["speed", "security,speed", ""])
def test_an_unknown_profile_is_named_with_the_known_ones(invoke: Invoke, given: str) -> None:
    outcome = invoke("audit", "--profile", given)
    assert outcome.code == 2
    assert "is not a profile" in outcome.err.splitlines()[0]
    assert "reliability, security, cost, all" in outcome.err


def test_a_custom_resource_that_cannot_be_listed_ends_no_audit(
    invoke: Invoke, start: Start, home: Path
) -> None:
    """As when the conversion webhook of its definition does not answer."""
    none = {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}
    names = {"plural": "things", "kind": "Thing"}
    versions = [{"name": "v1", "served": True, "storage": True}]
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": versions}
    definition = {"metadata": {"name": "things.example.com"}, "spec": spec}
    broken = {"kind": "Status", "reason": "InternalError", "message": "conversion", "code": 500}
    odd = {"kind": "Version", "gitVersion": 7}

    async def answer(request: Request) -> Response | Upgrade:
        path = request.path.partition("?")[0]
        if path.endswith("/customresourcedefinitions"):
            return await answering(200, {**none, "items": [definition]})(request)
        if path.endswith("/things"):
            return await answering(500, broken)(request)
        return await answering(200, odd if path == "/version" else none)(request)

    (home / "config").write_text(kubeconfig(start(answer).url))
    outcome = invoke("audit", "--kubeconfig", "config", "--profile", "reliability,all", "--all")
    assert outcome.code == 0, outcome.err
    assert "CRITICAL" not in outcome.out

"""`kvestigate fanout` on a cluster of two nodes, with a Deployment of two pods."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvestigate.client.connect import connect
from tests.bed import Bed
from tests.cli.conftest import Invoke, Outcome
from tests.hosts_cluster import HostsCluster

NODES = ("--target", "nodes")
WEB = ("--target", "deployment", "--deployment", "web")
UNDERSTOOD = "--i-understand-this-writes-to-hosts"

Fanout = Callable[..., Outcome]


@pytest.fixture(scope="module")
def hosts_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostsCluster]:
    cluster = HostsCluster(tmp_path_factory.mktemp("hosts"), gpus=2)
    asyncio.run(_fill(cluster))
    yield cluster
    cluster.close()


async def _fill(cluster: HostsCluster) -> None:
    sleeping = {"image": "busybox", "command": ["sleep", "infinity"]}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", **sleeping}, {"name": "side", **sleeping}],
        },
    }
    selector = {"matchLabels": {"app": "web"}}
    spec = {"replicas": 2, "selector": selector, "template": template}
    async with connect(cluster.access()) as api:
        bed = Bed(api)
        await bed.create("deployments", {"metadata": {"name": "web"}, "spec": spec})
        await bed.until(
            "deployments", lambda found: found["web"].get("status", {}).get("readyReplicas") == 2
        )


@pytest.fixture
def fanout(hosts_cluster: HostsCluster, monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> Fanout:
    monkeypatch.setenv("KUBECONFIG", str(hosts_cluster.kubeconfig))
    return lambda *words: invoke("fanout", *words)


def results(done: Outcome) -> dict[str, dict[str, Any]]:
    return {it["target"]["name"]: it for it in json.loads(done.out)["results"]}


def test_targets_are_shown_with_the_way_to_them(fanout: Fanout, invoke: Invoke) -> None:
    done = invoke("fanout", "targets", *NODES)
    assert done.code == 0
    assert "chroot /host ..." in done.out
    assert done.out.endswith("2 of 2 targets can be reached\n")
    found = json.loads(fanout("targets", *NODES, "-o", "json").out)["found"]
    assert [(it["name"], it["wrapper"]) for it in found] == [
        ("node-1", ["chroot", "/host"]),
        ("node-2", ["chroot", "/host"]),
    ]


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (NODES, ["node-1", "node-2"]),
        ((*NODES, "--node", "node-2"), ["node-2"]),
        ((*NODES, "--exclude-node", "node-2"), ["node-1"]),
    ],
)
def test_a_command_runs_on_the_hosts_that_were_selected(
    invoke: Invoke, fanout: Fanout, selection: tuple[str, ...], names: list[str]
) -> None:
    done = invoke("fanout", "exec", *selection, "--", "uname", "-n")
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()[1 : len(names) + 1]]
    assert [(target, said) for target, _, _, said in lines] == [(it, it) for it in names]
    told = sorted(line.split()[:3] for line in done.err.splitlines())
    assert told == [["✓", name, "exit=0"] for name in names]


@pytest.mark.parametrize(
    "selection",
    [WEB, ("--target", "pods", "-l", "app=web"), ("--target", "pods", "-n", "default")],
)
def test_a_command_runs_in_the_pods_that_were_selected(
    fanout: Fanout, selection: tuple[str, ...]
) -> None:
    done = fanout("exec", *selection, "-o", "json", "--", "hostname")
    said = {name: it["stdout"] for name, it in results(done).items() if name.startswith("web-")}
    assert len(said) == 2
    assert said == {name: f"{name}\n" for name in said}


def test_a_pod_is_selected_by_its_name_and_a_container_by_its_own(fanout: Fanout) -> None:
    found = json.loads(fanout("targets", *WEB, "-o", "json").out)["found"]
    assert {it["container"] for it in found} == {"main"}
    one = ("--target", "pods", "--pod", found[0]["name"], "-c", "side")
    [chosen] = json.loads(fanout("targets", *one, "-o", "json").out)["found"]
    assert (chosen["name"], chosen["container"]) == (found[0]["name"], "side")


def test_one_that_fails_fails_the_fan_out_and_the_others_are_done(
    fanout: Fanout, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.json"
    script = "echo out; echo err >&2; test $(uname -n) = node-1 || exit 3"
    done = fanout("exec", *NODES, "--json", str(kept), "--", "sh", "-c", script)
    assert done.code == 1
    assert "✗ node-2 exit=3" in done.err
    assert done.out.endswith("1 of 2 ok; failed: node-2\n")
    one, two = json.loads(kept.read_text())["results"]
    assert (one["exit_code"], one["outcome"], one["stdout"], one["stderr"]) == (
        0, "ok", "out\n", "err\n",
    )  # fmt: skip
    assert (two["exit_code"], two["outcome"]) == (3, "failed")


def test_what_takes_too_long_is_ended_on_the_host(fanout: Fanout) -> None:
    stuck = ("sh", "-c", "exec 9>/opt/held; flock 9; sleep 5432")
    done = fanout("exec", *NODES, "--timeout", "500ms", "-o", "json", "--", *stuck)
    assert done.code == 1
    assert {it["outcome"] for it in results(done).values()} == {"timeout"}
    # The lock is free when all who had the file open are gone.
    assert fanout("exec", *NODES, "--", "flock", "--timeout", "20", "/opt/held", "true").code == 0


def test_a_dry_run_shows_what_would_be_run(fanout: Fanout) -> None:
    done = fanout("exec", *NODES, "--dry-run", "--", "touch", "/opt/a b")
    assert done.code == 0
    assert done.out.count("chroot /host touch '/opt/a b'") == 2
    assert done.err == ""
    there = fanout("exec", *NODES, "--", "test", "-e", "/opt/a b")
    assert there.code == 1


def test_long_output_is_cut_unless_all_of_it_is_asked_for(fanout: Fanout) -> None:
    one = ("exec", *NODES, "--node", "node-1")
    cut = fanout(*one, "--", "seq", "100").out
    assert "\n50\n... 50 more lines; --full shows them\n" in cut
    full = fanout(*one, "--full", "--", "seq", "100").out
    assert "\n99\n100\n" in full
    assert "more lines" not in full


def test_files_and_trees_are_fetched_to_a_directory_each(
    invoke: Invoke, fanout: Fanout, tmp_path: Path
) -> None:
    make = "mkdir -p /opt/tree/deep; uname -n >/opt/tree/deep/name; ln -sfn deep /opt/tree/link"
    assert fanout("exec", *NODES, "--", "sh", "-c", make).code == 0
    for _ in range(2):  # what is there is replaced
        done = invoke("fanout", "fetch", "/opt/tree", str(tmp_path / "out"), *NODES)
        assert (done.code, done.out.splitlines()[-1]) == (0, "2 of 2 ok")
    assert (tmp_path / "out/node-2/tree/deep/name").read_text() == "node-2\n"
    assert (tmp_path / "out/node-2/tree/link").readlink() == Path("deep")
    assert sorted(it.name for it in (tmp_path / "out/node-2").iterdir()) == ["tree"]
    done = fanout("fetch", "/opt/tree/deep/name", str(tmp_path / "out"), *NODES)
    assert (tmp_path / "out/node-1/name").read_text() == "node-1\n"


def test_what_is_not_there_is_not_fetched(fanout: Fanout, tmp_path: Path) -> None:
    done = fanout("fetch", "/opt/nothing", str(tmp_path / "out"), *NODES)
    assert done.code == 1
    assert "/opt/nothing: no such file or directory" in done.out
    assert not (tmp_path / "out").exists()


def test_a_push_needs_to_be_meant(invoke: Invoke, fanout: Fanout, tmp_path: Path) -> None:
    local = tmp_path / "motd"
    local.write_text("hello\n")
    words = ("push", str(local), "/opt/motd", *NODES)
    refused = invoke("fanout", "push", *words[1:])
    assert refused.code == 0
    assert "would write 6 bytes to /opt/motd on 2 targets" in refused.out
    assert UNDERSTOOD in refused.err
    assert fanout(*words, "--dry-run").code == 0
    assert fanout(*words, "--dry-run", UNDERSTOOD).code == 0
    assert fanout("exec", *NODES, "--", "test", "-e", "/opt/motd").code == 1


def test_a_pushed_file_takes_the_place_of_the_old_one(fanout: Fanout, tmp_path: Path) -> None:
    local = tmp_path / "tool"
    local.write_bytes(bytes(range(256)) * 1000)
    local.chmod(0o755)
    setup = "rm -rf /opt/p; mkdir /opt/p; echo old >/opt/p/old; chmod 640 /opt/p/old; "
    setup += "chown 4:5 /opt/p/old; ln -s old /opt/p/link"
    fanout("exec", *NODES, "--", "sh", "-c", setup)
    for name in ("new", "link"):
        pushed = fanout("push", str(local), f"/opt/p/{name}", *NODES, UNDERSTOOD)
        assert (pushed.code, pushed.out.splitlines()[-1]) == (0, "2 of 2 ok")
    show = "cd /opt/p; ls -A; stat -c '%a %u:%g %s' new old; readlink link; cmp new old"
    shown = fanout("exec", *NODES, "--node", "node-2", "-o", "json", "--", "sh", "-c", show)
    assert results(shown)["node-2"]["stdout"] == (
        "link\nnew\nold\n755 0:0 256000\n640 4:5 256000\nold\n"
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("exec", *NODES, "--node", "nope", "--", "true"), 5, "the nodes are: node-1, node-2"),
        (("exec", *NODES, "-l", "a=b", "--", "true"), 2, "takes --node, --exclude-node"),
        (("exec", "--target", "deployment", "--", "true"), 2, "add --deployment NAME"),
        (("exec", *WEB, "-c", "nope", "--", "true"), 2, "it has: main, side"),
        (("exec", "--target", "pods", "-l", "app=no", "--", "true"), 5, "`kvestigate pods` lists"),
        (("exec", "--target", "pods", "--pod", "web", "--", "true"), 5, "did you mean 'web-"),
        (("exec", *NODES, "--node-ds-name", "x", "--", "true"), 5, "kvestigate fanout manifest |"),
        (("exec", *NODES, "--max-parallel", "0", "--", "true"), 2, "whole number from 1"),
        (("exec", *NODES, "--timeout", "0", "--", "true"), 2, "write 60 or 2m"),
        (("exec", "--", "true"), 2, "--target"),
        (("fetch", "etc/hosts", "out", *NODES), 2, "/etc/hosts"),
        (("push", "nope", "/opt/x", *NODES), 2, "check the path"),
        (("push", ".", "/opt/x", *NODES), 2, "tar -czf"),
        (("push", "/etc/hostname", "/opt/", *NODES), 2, "absolute path of a file"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_the_way_out(
    fanout: Fanout, words: tuple[str, ...], code: int, said: str
) -> None:
    done = fanout(*words)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_a_push_into_no_directory_fails_on_that_target(fanout: Fanout, tmp_path: Path) -> None:
    local = tmp_path / "file"
    local.write_text("x")
    done = fanout("push", str(local), "/opt/none/file", *NODES, UNDERSTOOD)
    assert done.code == 1
    assert "/opt/none: no such directory" in done.out


def test_a_push_that_is_ended_leaves_nothing_behind(fanout: Fanout, tmp_path: Path) -> None:
    local = tmp_path / "large"
    local.write_bytes(bytes(50_000_000))
    fanout("exec", *NODES, "--", "mkdir", "-p", "/opt/whole")
    fanout("push", str(local), "/opt/whole/large", *NODES, UNDERSTOOD, "--timeout", "300ms")
    # It is cleaned up in a moment; what is there then is all of it, or nothing.
    wait = "while ls -A | grep -q '^[.]push'; do sleep 0.1; done"
    check = f"cd /opt/whole; {wait}; [ ! -e large ] || [ $(wc -c <large) = 50000000 ]"
    assert fanout("exec", *NODES, "--timeout", "20", "--", "sh", "-c", check).code == 0


def test_the_daemon_set_is_printed_to_be_applied(invoke: Invoke) -> None:
    made = yaml.safe_load(invoke("fanout", "manifest").out)
    assert (made["kind"], made["metadata"]["name"]) == ("DaemonSet", "direct-node-access")
    assert json.loads(invoke("fanout", "manifest", "-o", "json").out) == made

"""What a spec asks of the kubelet, on each host that runs real processes."""

from __future__ import annotations

import os
import re

import pytest

from kvestigate.client.api import PODS, Api, PatchType
from kvestigate.client.recorder import EVENTS
from kvestigate.cluster.node.agent.agent import Agent
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.hosts.directory import DirectoryHost
from kvestigate.cluster.node.volumes.sources import CONFIG_MAPS
from tests.cluster.node.conftest import (
    PYTHON,
    MakeHost,
    Object,
    ended,
    in_phase,
    is_ready,
    logs,
    lone_agent,
    pod,
    says,
    shell,
    state_of,
    told,
    until,
    until_gone,
)


def has_started(found: Object) -> bool:
    return any(one["started"] for one in found.get("status", {}).get("containerStatuses", []))


def was_restarted(found: Object) -> bool:
    return any(one["restartCount"] for one in found.get("status", {}).get("containerStatuses", []))


@pytest.mark.parametrize(
    ("script", "policy", "message"),
    [
        ("echo out; echo err >&2; exit 1", "File", ""),
        ("echo out; sleep 0.01; echo err >&2; exit 1", "FallbackToLogsOnError", "out\nerr\n"),
        ("echo out", "FallbackToLogsOnError", ""),
        ("echo out; echo own >/dev/termination-log; exit 1", "FallbackToLogsOnError", "own\n"),
        (
            "seq 1000 1099; exit 1",
            "FallbackToLogsOnError",
            "".join(f"{number}\n" for number in range(1020, 1100)),
        ),
        ("printf %03000d 7; exit 1", "FallbackToLogsOnError", f"{7:02048d}"),
        ("printf %05000d 7 >/dev/termination-log", "File", f"{7:04096d}"),
    ],
    ids=["file", "log", "success", "own", "lines", "bytes", "end of the file"],
)
async def test_what_a_container_says_last(
    api: Api, agent: Agent, script: str, policy: str, message: str
) -> None:
    done = await ended(api, shell(script, terminationMessagePolicy=policy))
    assert state_of(done)["terminated"].get("message", "") == message


async def test_containers_share_the_room_for_their_last_words(api: Api, agent: Agent) -> None:
    loud = shell("printf %05000d 7 >/dev/termination-log")
    done = await ended(api, *({**loud, "name": name} for name in "abcd"))
    assert len(state_of(done, "d")["terminated"]["message"]) == 12 * 1024 // 4


async def test_containers_may_see_each_others_processes(api: Api, agent: Agent) -> None:
    look = "until grep -qs [4]242 /proc/[0-9]*/cmdline; do sleep 0.05; done; echo seen"
    other = {**shell("exec sleep 4242"), "name": "other"}
    spec = {"shareProcessNamespace": True, "terminationGracePeriodSeconds": 0}
    await api.create(PODS, pod("p", shell(f"{look}; exec sleep 1000"), other, **spec))
    await until(api, "p", in_phase("Running"))
    await says(agent, "p", "seen")
    await api.delete(PODS, "p")
    await until_gone(api, "p")


async def test_one_containers_end_is_not_the_others(api: Api, agent: Agent) -> None:
    brief = {**shell(f"setsid sleep 9{os.getpid()} & sleep 0.3; exit 3"), "name": "brief"}
    # In this form, who looks does not find itself.
    seen = f"grep -qs [9]{os.getpid()} /proc/[0-9]*/cmdline"
    watch = f"until {seen}; do sleep 0.05; done; while {seen}; do sleep 0.05; done; exit 4"
    spec = {"shareProcessNamespace": True}
    done = await ended(api, shell(watch), brief, **spec)
    codes = [state_of(done, name)["terminated"]["exitCode"] for name in ("main", "brief")]
    assert codes == [4, 3]


async def test_names_of_the_pods_own(api: Api, agent: Agent) -> None:
    aliases = [{"ip": "10.9.8.7", "hostnames": ["one.test", "two.test"]}]
    await ended(api, shell("getent hosts two.test; exit 0"), hostAliases=aliases)
    if isinstance(agent.host, DirectoryHost):
        assert "hostAliases" in await told(api, "NotEnforced")
    else:
        assert (await logs(agent, "p")).split()[:2] == ["10.9.8.7", "one.test"]


# Hooks, and the order of ending.

SHARED = {"volumes": [{"name": "x", "emptyDir": {}}]}
MOUNTS = [{"name": "x", "mountPath": "/x"}]


async def test_the_next_container_waits_for_a_hook(api: Api, agent: Agent) -> None:
    hook = {"exec": {"command": ["sh", "-c", "sleep 0.2; echo hooked >/x/first"]}}
    until_end = "until [ -e /x/end ]; do sleep 0.02; done"
    first = shell(until_end, volumeMounts=MOUNTS, lifecycle={"postStart": hook})
    second = shell("cat /x/first; touch /x/end", name="second", volumeMounts=MOUNTS)
    await api.create(PODS, pod("p", first, second, restartPolicy="Never", **SHARED))
    early = await until(api, "p", lambda found: "hostIP" in found.get("status", {}))
    assert state_of(early)["waiting"]["reason"] == "ContainerCreating"
    assert early["status"]["phase"] == "Pending"
    await until(api, "p", in_phase("Succeeded"))
    assert await logs(agent, "p", "second") == "hooked\n"


@pytest.mark.parametrize("hook", [{"exec": {"command": ["false"]}}, {"tcpSocket": {"port": 1}}])
async def test_a_hook_that_fails_ends_its_container(api: Api, agent: Agent, hook: Object) -> None:
    main = shell("exec sleep 1000", lifecycle={"postStart": hook})
    done = await ended(api, main)
    assert state_of(done)["terminated"]["exitCode"] == 143
    assert await told(api, "FailedPostStartHook") == "PostStartHook failed"


async def test_a_pod_can_be_deleted_while_its_hook_runs(api: Api, agent: Agent) -> None:
    main = shell("exec sleep 1000", lifecycle={"postStart": {"exec": {"command": ["sleep", "60"]}}})
    await api.create(PODS, pod("p", main))
    await until(api, "p", lambda found: "hostIP" in found.get("status", {}))
    await api.delete(PODS, "p")
    await until_gone(api, "p")


async def test_a_hook_at_the_end_may_fail(api: Api, agent: Agent) -> None:
    main = shell("exec sleep 1000", lifecycle={"preStop": {"exec": {"command": ["false"]}}})
    await api.create(PODS, pod("p", main))
    await until(api, "p", is_ready)
    await api.delete(PODS, "p")
    await until_gone(api, "p")
    assert await told(api, "FailedPreStopHook") == "PreStopHook failed"


def _once(name: str) -> Object:
    """A hook that waits for a file in the shared volume: until traps are set, say."""
    words = f"until [ -e /x/{name} ]; do sleep 0.02; done"
    return {"exec": {"command": ["sh", "-c", words]}}


async def test_the_hooks_of_sidecars_do_not_wait_for_the_others(api: Api, agent: Agent) -> None:
    """But their signals do: each says when it got its own."""
    hook = {"exec": {"command": ["touch", "/x/hooked"]}}
    trap = "trap 'echo {0} >>/x/order; exit 0' TERM; touch /x/{0}; while :; do sleep 0.02; done"
    beside = [
        shell(
            trap.format(name),
            name=name,
            image="busybox",
            restartPolicy="Always",
            lifecycle={"postStart": _once(name), "preStop": hook},
            volumeMounts=MOUNTS,
        )
        for name in ("s", "t")
    ]
    wait = "until [ -e /x/hooked ]; do sleep 0.02; done; echo main >>/x/order; exit 0"
    main = shell(
        f"trap '{wait}' TERM; touch /x/main; while :; do sleep 0.02; done",
        lifecycle={"postStart": _once("main")},
        volumeMounts=MOUNTS,
    )
    made = pod("p", main, initContainers=beside, terminationGracePeriodSeconds=20, **SHARED)
    made["metadata"]["finalizers"] = ["example.com/look"]
    await api.create(PODS, made)
    running = await until(api, "p", is_ready)
    await api.delete(PODS, "p")
    done = await until(
        api, "p", lambda found: all("terminated" in state_of(found, one) for one in ("main", "s"))
    )
    codes = [state_of(done, name)["terminated"]["exitCode"] for name in ("main", "s", "t")]
    assert codes == [0, 0, 0]
    root = agent.host.volumes_root
    assert root is not None
    order = root / running["metadata"]["uid"] / "x" / "order"
    assert order.read_text().split() == ["main", "t", "s"]


async def test_a_deadline_counts_from_the_pods_start(api: Api, make_host: MakeHost) -> None:
    config = NodeConfig("here", keep_pods=True)
    async with lone_agent(api, make_host("here"), config):
        await api.create(PODS, pod("p", shell("exec sleep 1000"), activeDeadlineSeconds=600))
        await until(api, "p", is_ready)
    long_ago = {"status": {"startTime": "2020-01-01T00:00:00Z"}}
    await api.patch(PODS, "p", long_ago, PatchType.MERGE, subresource="status")
    async with lone_agent(api, make_host("here"), NodeConfig("here")):
        done = await until(api, "p", in_phase("Failed"))
        assert done["status"]["reason"] == "DeadlineExceeded"
        assert "longer than" in await told(api, "DeadlineExceeded")


STUBBORN = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        said = [value for name in ("User-Agent", "Accept") for value in self.headers.get_all(name)]
        open("/dev/termination-log", "w").write(" ".join(said))
        self.send_error(500)
server = http.server.HTTPServer(("", 8080), Handler)
print("up", flush=True)
server.serve_forever()
"""


@pytest.mark.parametrize(
    ("headers", "seen"),
    [({}, "kube-lifecycle/1.36 */*"), ({"user-agent": "mine", "Accept": "a/b"}, "mine a/b")],
    ids=["plain", "own headers"],
)
async def test_a_hook_takes_any_answer_of_a_server(
    api: Api, agent: Agent, headers: dict[str, str], seen: str
) -> None:
    own = [{"name": name, "value": value} for name, value in headers.items()]
    main = {
        "command": [PYTHON, "-c", STUBBORN],
        "lifecycle": {"preStop": {"httpGet": {"port": 8080, "httpHeaders": own}}},
    }
    made = pod("p", main)
    made["metadata"]["finalizers"] = ["example.com/look"]
    await api.create(PODS, made)
    await until(api, "p", is_ready)
    await says(agent, "p", "up")
    await api.delete(PODS, "p")
    done = await until(api, "p", lambda found: "terminated" in state_of(found))
    assert state_of(done)["terminated"]["message"] == seen
    reasons = [event["reason"] for event in (await api.list(EVENTS)).items]
    assert "FailedPreStopHook" not in reasons


# Probes.

HEALTH = """
import socket
server = socket.create_server(("", 8080))
def frame(kind, content=b"", flags=0, stream=0):
    head = len(content).to_bytes(3, "big") + bytes((kind, flags))
    return head + stream.to_bytes(4, "big") + content
print("up", flush=True)
while True:
    with server.accept()[0] as peer:
        asked = b""
        while not asked.endswith((b"good", b"bad")):
            asked += peer.recv(9999)
        status = 1 if asked.endswith(b"good") else 2
        ok = frame(1, b"\\x88", 4, 1)
        peer.sendall(frame(4) + ok + frame(0, bytes((0, 0, 0, 0, 2, 8, status)), 1, 1))
        peer.recv(9999)
"""


async def test_a_grpc_probe_asks_for_its_service(api: Api, agent: Agent) -> None:
    probe = {"periodSeconds": 1, "failureThreshold": 1}
    made = pod(
        "p",
        {
            "command": [PYTHON, "-c", HEALTH],
            "startupProbe": {
                "periodSeconds": 1,
                "failureThreshold": 60,
                "grpc": {"port": 8080, "service": "good"},
            },
            "readinessProbe": {**probe, "grpc": {"port": 8080, "service": "bad"}},
        },
        terminationGracePeriodSeconds=0,
    )
    await api.create(PODS, made)
    assert not is_ready(await until(api, "p", has_started))
    assert (
        await told(api, "Unhealthy", "Readiness")
        == 'Readiness probe failed: service unhealthy (responded with "NOT_SERVING")'
    )


async def test_what_starts_late_is_ready_when_it_has_started(api: Api, agent: Agent) -> None:
    probe = {"exec": {"command": ["test", "-e", "/data/up"]}, "periodSeconds": 1}
    late = shell(
        "sleep 0.5; touch /data/up; sleep 60",
        startupProbe=probe,
        volumeMounts=[{"name": "data", "mountPath": "/data"}],
    )
    await api.create(PODS, pod("p", late, volumes=[{"name": "data", "emptyDir": {}}]))
    await until(api, "p", is_ready)


@pytest.mark.parametrize(
    ("probe", "said"),
    [
        ({"tcpSocket": {"port": 9}}, r"dial tcp 10\.\S+:9: connect: connection refused"),
        (
            {"httpGet": {"port": 9, "path": "/up"}},
            r'Get "http://10\.\S+:9/up": dial tcp 10\.\S+:9: connect: connection refused',
        ),
        ({"grpc": {"port": 9}}, "error: failed to connect service at port 9: connection refused"),
    ],
    ids=["tcp", "http", "grpc"],
)
async def test_a_port_that_nobody_listens_at_is_told_as_such(
    api: Api, agent: Agent, probe: Object, said: str
) -> None:
    await api.create(PODS, pod("p", shell("sleep 60", readinessProbe=probe)))
    assert re.fullmatch(f"Readiness probe failed: {said}", await told(api, "Unhealthy"))


async def test_a_probe_that_takes_too_long_is_ended(api: Api, agent: Agent) -> None:
    slow = "trap '' HUP TERM; echo $$ >>/data/pids; sleep 60; exit 0"
    watching = """
        until [ -s /data/pids ]; do sleep 0.05; done
        read -r pid </data/pids
        while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
        echo gone; sleep 60
    """
    probe = {"exec": {"command": ["sh", "-c", slow]}, "timeoutSeconds": 1}
    mounts = [{"name": "data", "mountPath": "/data"}]
    main = shell(watching, readinessProbe=probe, volumeMounts=mounts)
    await api.create(PODS, pod("p", main, volumes=[{"name": "data", "emptyDir": {}}]))
    await until(api, "p", has_started)
    await says(agent, "p", "gone")


async def test_two_seconds_are_left_to_whoever_is_ended(api: Api, agent: Agent) -> None:
    """However little the spec leaves them, as the kubelet does."""
    probe = {"exec": {"command": ["false"]}, "failureThreshold": 1, "initialDelaySeconds": 1}
    slow = "trap 'sleep 1.3; exit 3' TERM; while :; do sleep 0.05; done"
    main = shell(slow, livenessProbe={**probe, "terminationGracePeriodSeconds": 1})
    await api.create(PODS, pod("p", main))
    found = await until(api, "p", was_restarted)
    assert found["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 3


# The environment.


async def test_whole_config_maps_in_the_environment(api: Api, agent: Agent) -> None:
    """Every key, also one that is no name to a shell; but none that is no text."""
    data = {"plain": "1", "with.dot": "2", "with-dash": "a b"}
    body = {"metadata": {"name": "c"}, "data": data, "binaryData": {"without": "AAAA"}}
    await api.create(CONFIG_MAPS, body)
    sources = [{"configMapRef": {"name": "c"}, "prefix": "P_"}, {"configMapRef": {"name": "c"}}]
    await ended(api, {"command": ["env"], "envFrom": sources})
    said = (await logs(agent, "p")).splitlines()
    assert sorted(line for line in said if "plain" in line or "with" in line) == [
        "P_plain=1",
        "P_with-dash=a b",
        "P_with.dot=2",
        "plain=1",
        "with-dash=a b",
        "with.dot=2",
    ]


# What cannot be.


@pytest.mark.parametrize(
    "odd",
    [
        {"command": ["echo", "a\0b"]},
        {"command": ["a\0b"]},
        {"command": ["true"], "env": [{"name": "A", "value": "a\0b"}]},
        {"command": ["true"], "workingDir": "/a\0b"},
        {"command": ["true"], "volumeMounts": [{"name": "v", "mountPath": "/a\0b"}]},
        {
            "command": ["true"],
            "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "a\0b"}],
        },
        {"command": ["true"], "terminationMessagePath": "/a\0b"},
    ],
    ids=["word", "program", "variable", "directory", "mount", "sub path", "message"],
)
async def test_a_pod_that_cannot_be_is_no_matter_to_others(
    api: Api, agent: Agent, odd: Object
) -> None:
    volumes = [{"name": "v", "emptyDir": {}}]
    await api.create(PODS, pod("odd", odd, restartPolicy="Never", volumes=volumes))
    await until(api, "odd", lambda found: bool(state_of(found)))
    done = await ended(api, shell("exit 0"))
    assert done["status"]["phase"] == "Succeeded"

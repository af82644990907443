"""A job over a gateway that comes and goes: nothing is done twice, and nothing is forgotten."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kvestigate_client import gateway
from kvestigate_client.distributed_job import DistributedJob
from kvestigate_client.gateway import CybernetClient, GatewayUnreachable
from kvestigate_client.shards import NotCleanedUp

EFFECTS = {"report.run": "read", "workspace.ps": "read", "workspace.gpus": "read"}
Fault = Callable[["Space", str, Any], "tuple[int, dict[str, str], Any] | str | None"]


class Space:
    """A gateway of which the tests decide when it fails; what it holds outlives its restarts."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.workspaces: dict[str, str] = {}
        """Name -> node."""
        self.runs: dict[str, list[dict[str, Any]]] = {}
        self.busy_nodes: set[str] = set()
        """Whose GPUs are taken by somebody else."""
        self.fault: Fault | None = None
        self.files: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        self.port = 0

    def start(self) -> None:
        space = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200, {}, space.info())

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                parameters = json.loads(self.rfile.read(length))
                operation = self.path.rpartition("/")[2]
                with space._lock:
                    found = space.answered(operation, parameters)
                if isinstance(found, str):
                    self.connection.shutdown(socket.SHUT_RDWR)
                else:
                    self._answer(*found)

            def _answer(self, status: int, headers: dict[str, str], value: Any) -> None:
                body = json.dumps(value).encode()
                self.send_response(status)
                for name, text in {**headers, "content-length": str(len(body))}.items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Tests have enough to say."""

        ThreadingHTTPServer.allow_reuse_address = True
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.01,)).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def restart(self) -> None:
        """Away for a moment: whoever calls meanwhile is refused."""
        self.stop()
        threading.Timer(0.7, self.start).start()

    def info(self) -> Any:
        names = ("report.run", "create", "sync", "run", "ps", "destroy", "logs", "gpus")
        operations = [name if "." in name else f"workspace.{name}" for name in names]
        return {
            "operations": [{"name": it, "effect": EFFECTS.get(it, "write")} for it in operations],
            "constraints": {"hosts": {}},
        }

    def answered(self, operation: str, parameters: Any) -> tuple[int, dict[str, str], Any] | str:
        self.calls.append(operation)
        if self.fault and (fault := self.fault(self, operation, parameters)) is not None:
            return fault
        return self.carried_out(operation, parameters)

    def carried_out(self, operation: str, parameters: Any) -> tuple[int, dict[str, str], Any]:
        workspace = parameters.get("workspace", {})
        name, node = workspace.get("name", ""), workspace.get("node", "")
        match operation:
            case "report.run":
                return 200, {}, {"report": {"available": False, "nodes": NODES}}
            case "workspace.gpus":
                return 200, {}, {"nodes": [{"node": it["name"], "free": 8} for it in NODES]}
            case "workspace.create":
                if node in self.busy_nodes:
                    return refused(409, "conflict", "2 GPUs are wanted, 0 are free")
                self.workspaces[name] = node
            case "workspace.run":
                self.runs.setdefault(name, []).append(
                    {"tag": parameters["tag"], "pid": 100 + len(self.calls)}
                )
                return 200, {}, self.runs[name][-1]
            case "workspace.ps":
                ended = {"state": "exited", "exit_code": 0}
                last = {it["tag"]: {**it, **ended} for it in self.runs.get(name, [])}
                return 200, {}, {"runs": list(last.values())}
            case "workspace.destroy":
                if self.workspaces.pop(name, None) is None:
                    return refused(404, "not_found", "there is no such workspace")
            case "workspace.logs":
                return 200, {}, {"text": "hello\n"}
        return 200, {}, {}


def refused(status: int, code: str, message: str, **headers: str) -> tuple[int, Any, Any]:
    return status, headers, {"error": {"code": code, "message": message, "reason": "x"}}


def node(name: str, load: int) -> dict[str, Any]:
    amount = {"allocatable": 100_000, "requested": load}
    return {
        "name": name,
        "ready": True,
        "schedulable": True,
        "cpu_millis": amount,
        "memory_bytes": amount,
        "gpus": {"allocatable": 8, "requested": 0},
    }


NODES = [node(f"n{number}", number) for number in range(4)]


@pytest.fixture
def space() -> Iterator[Space]:
    made = Space()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def client(space: Space) -> CybernetClient:
    return CybernetClient(f"http://127.0.0.1:{space.port}", "t", timeout=30)


@pytest.fixture
def job(client: CybernetClient, tmp_path: Path) -> DistributedJob:
    return DistributedJob(client, prefix="job", shards=2, state=tmp_path / "job.json")


def finished(job: DistributedJob) -> None:
    job.discover_and_plan()
    job.provision(tmpfs_per_shard="1Mi")
    job.run(["true"])
    job.wait_until_complete(poll_interval=0.01, progress=lambda _: None)


def once(operation: str, fault: Fault) -> Fault:
    """The fault for the first call of an operation."""
    waiting = [operation]

    def apply(space: Space, called: str, parameters: Any) -> Any:
        if waiting and called == operation:
            waiting.clear()
            return fault(space, called, parameters)
        return None

    return apply


def goes_away_before(space: Space, called: str, parameters: Any) -> Any:
    threading.Thread(target=space.restart).start()
    return "gone"


def goes_away_after(space: Space, called: str, parameters: Any) -> Any:
    space.carried_out(called, parameters)
    return goes_away_before(space, called, parameters)


def is_busy(space: Space, called: str, parameters: Any) -> Any:
    return refused(503, "unavailable", "busy", **{"Retry-After": "0"})


@pytest.mark.parametrize("fault", [goes_away_before, goes_away_after, is_busy])
@pytest.mark.parametrize(
    "operation",
    ["report.run", "workspace.create", "workspace.run", "workspace.ps", "workspace.destroy"],
)
def test_a_job_survives_a_gateway_that_is_started_anew(
    space: Space, client: CybernetClient, job: DistributedJob, operation: str, fault: Fault
) -> None:
    client.info()
    space.fault = once(operation, fault)
    with job:
        finished(job)
    assert space.workspaces == {}
    assert [len(runs) for runs in space.runs.values()] == [1, 1], "started once each"


def test_a_gateway_that_never_was_is_not_waited_for() -> None:
    with pytest.raises(GatewayUnreachable):
        CybernetClient("http://127.0.0.1:1", patience=600).call("report.run")


def test_what_must_not_be_done_twice_is_told_as_unclear(
    space: Space, client: CybernetClient
) -> None:
    client.info()
    space.fault = once("workspace.run", goes_away_after)
    with pytest.raises(GatewayUnreachable) as caught:
        client.call("workspace.run", {"workspace": {"name": "w"}, "tag": "t"})
    assert caught.value.unclear
    assert space.calls.count("workspace.run") == 1


def test_patience_ends(space: Space) -> None:
    client = CybernetClient(f"http://127.0.0.1:{space.port}", patience=0.5)
    client.info()
    space.stop()
    with pytest.raises(GatewayUnreachable):
        client.call("report.run")


def test_a_wrong_token_is_not_tried_again(space: Space, client: CybernetClient) -> None:
    space.fault = lambda *_: refused(429, "rate_limited", "slow down", **{"Retry-After": "60"})
    with pytest.raises(gateway.RateLimited):
        client.call("report.run")
    assert len(space.calls) == 1


def test_gpus_that_are_taken_are_looked_for_on_another_node(
    space: Space, job: DistributedJob
) -> None:
    space.busy_nodes = {"n0", "n2"}
    with job:
        job.discover_and_plan(gpu_per_shard=2)
        assert job.nodes == ["n0", "n1"]
        shards = job.provision()
        assert [shard.node for shard in shards] == job.nodes == ["n3", "n1"]
        assert sorted(space.workspaces.values()) == ["n1", "n3"]
    assert space.workspaces == {}


def test_where_no_node_has_gpus_the_conflict_is_raised_and_nothing_is_left(
    space: Space, job: DistributedJob, tmp_path: Path
) -> None:
    space.busy_nodes = {"n0", "n2", "n3"}
    with job:
        job.discover_and_plan(gpu_per_shard=2)
        with pytest.raises(gateway.ConflictFound):
            job.provision()
    assert space.workspaces == {}
    assert not (tmp_path / "job.json").exists()


def stubborn(space: Space, called: str, parameters: Any) -> Any:
    if called == "workspace.destroy" and parameters["workspace"]["node"] == "n1":
        return refused(503, "unavailable", "the node does not answer")
    return None


def test_what_could_not_be_removed_is_not_forgotten(
    space: Space, client: CybernetClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    impatient = CybernetClient(client.base_url, "t", patience=0)
    space.fault = stubborn
    with (
        pytest.raises(NotCleanedUp, match="the node does not answer") as caught,
        DistributedJob(impatient, prefix="job", shards=2) as job,
    ):
        finished(job)
    [left] = caught.value.left
    assert (left.rank, left.node, job.shards) == (1, "n1", [left])
    [file] = tmp_path.iterdir()
    assert f'DistributedJob.resume(client, "{file}").destroy()' in str(caught.value)
    assert file.stat().st_mode & 0o777 == 0o600
    space.fault = None
    resumed = DistributedJob.resume(client, file)
    assert resumed.shards == [left]
    resumed.destroy()
    assert space.workspaces == {}
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_was_killed_goes_on_where_it_was(
    space: Space, client: CybernetClient, job: DistributedJob, tmp_path: Path
) -> None:
    job.discover_and_plan()
    job.provision(tmpfs_per_shard="1Mi")
    job.run(["true"], tag="train")
    del job
    with DistributedJob.resume(client, tmp_path / "job.json") as resumed:
        results = resumed.wait_until_complete(poll_interval=0.01, progress=lambda _: None)
    assert [(it.rank, it.tag, it.exit_code) for it in results] == [(0, "train", 0), (1, "train", 0)]
    assert space.workspaces == {}


def test_a_tag_that_is_used_again_is_started_again(
    space: Space, client: CybernetClient, job: DistributedJob
) -> None:
    client.info()
    with job:
        finished(job)
        space.fault = once("workspace.run", goes_away_before)
        job.run(["true"])
        assert [len(runs) for runs in space.runs.values()] == [2, 2]

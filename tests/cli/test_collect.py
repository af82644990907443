"""`kvestigate collect` and `k8s-collect`, from the command line to the events."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from urllib.request import urlopen

import pytest

import k8s_collect
import kvestigate.collect
from k8s_collect import (
    ContainerSpec,
    InferenceRequest,
    SeenCache,
    list_and_emit_initial,
    stream_inference_requests,
)
from kvestigate.cli.main import K8S_COLLECT_PROGRAM
from kvestigate.client.access import AccessOptions, resolve
from kvestigate.client.connect import connect
from kvestigate.errors import UsageError
from kvestigate.http.message import Request, Response
from kvestigate.kube import builtins
from kvestigate.kube.yaml_documents import load
from tests.cli.conftest import Invoke, Served, Start, kubeconfig
from tests.collect.conftest import deployment

PROGRAM = "from kvestigate.cli.main import k8s_collect; k8s_collect()"

MANIFEST = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 2
  template:
    spec:
      containers: [{name: main, image: "train:1"}, {name: tail, image: "tail:1"}]
---
kind: }
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: main, image: "web:1"}]}
"""


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def names(text: str) -> list[tuple[str, str]]:
    return [(it["workload_kind"], it["workload_name"]) for it in events(text)]


def test_from_file_emits_what_can_be_read(invoke: Invoke, home: Path) -> None:
    (home / "all.yaml").write_text(MANIFEST)
    outcome = invoke("collect", "from-file", "all.yaml", "--sidecar", "tail")
    assert outcome.code == 0
    assert names(outcome.out) == [("Job", "train"), ("Pod", "web")]
    assert [it["sidecar_count"] for it in events(outcome.out)] == [1, 0]
    assert outcome.err.startswith("all.yaml:10:")


def test_from_file_is_strict_if_asked(invoke: Invoke, home: Path) -> None:
    (home / "all.yaml").write_text(MANIFEST)
    outcome = invoke("from-file", "all.yaml", "--strict", root=K8S_COLLECT_PROGRAM)
    assert outcome.code == 2
    assert len(events(outcome.out)) == 2
    assert "error: 1 document could not be read" in outcome.err


def test_from_file_says_that_there_is_nothing(invoke: Invoke, home: Path) -> None:
    (home / "map.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    outcome = invoke("from-file", "map.yaml", root=K8S_COLLECT_PROGRAM)
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.startswith("no workloads found")


def test_from_file_reads_stdin(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MANIFEST.encode())))
    outcome = invoke("from-file", "-", root=K8S_COLLECT_PROGRAM)
    assert names(outcome.out) == [("Job", "train"), ("Pod", "web")]
    assert outcome.err.startswith("-:10:")


def test_the_schema_is_printed(invoke: Invoke) -> None:
    for command in ("watch", "from-file"):
        outcome = invoke("collect", command, "--schema")
        assert outcome.code == 0
        assert "effective_cpu_mcpu" in json.loads(outcome.out)["properties"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--kinds", "Job", "Service"), "--kinds: 'Service' is not a known kind"),
        (("--kind-path", "Fleet"), "--kind-path: 'Fleet' is not GROUP/VERSION/KIND:PATH"),
        (("--post", "ftp://x"), "--post: not a URL"),
        (("--post", "http://x", "--post-token-env", "NO_SUCH"), "NO_SUCH is not set"),
        (("--post-batch", "0"), "'0' is not a whole number"),
        (("--listen", "9102"), "--listen: '9102' is not HOST:PORT"),
        (("--rotate-size", "big"), "'big' is not a size"),
        (("--ca-file", "missing.pem"), "missing.pem: the certificate authority cannot be read"),
    ],
)
def test_watching_that_cannot_be(
    invoke: Invoke, home: Path, flags: tuple[str, ...], message: str
) -> None:
    (home / "config").write_text(kubeconfig("https://127.0.0.1:1"))
    outcome = invoke("watch", "--kubeconfig", "config", *flags, root=K8S_COLLECT_PROGRAM)
    assert outcome.code == 2
    assert message in outcome.err


def test_watching_without_a_server(invoke: Invoke, home: Path) -> None:
    (home / "config").write_text("{}")
    assert invoke("collect", "watch", "--kubeconfig", "config").code == 3


class Collecting:
    """A collector as users start it, in a process of its own."""

    def __init__(self, config: Path, *flags: str) -> None:
        command = [sys.executable, "-c", PROGRAM, "watch", "--kubeconfig", str(config), *flags]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.out: IO[str] = self.process.stdout
        self.err: IO[str] = self.process.stderr

    def event(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out.readline())
        return found

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        self.process.communicate(timeout=20)
        return self.process.returncode


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    served = Served(tmp_path_factory.mktemp("planes"))
    yield served.data / "admin.kubeconfig"
    served.close()


def apply(config: Path, *manifests: dict[str, Any]) -> None:
    async def run() -> None:
        access = resolve(AccessOptions(kubeconfig=str(config)), {}, None)
        async with connect(access) as api:
            for manifest in manifests:
                made = builtins.registry().for_kind(manifest["apiVersion"], manifest["kind"])
                assert made is not None
                await api.apply(made, manifest, namespace=manifest["metadata"].get("namespace"))

    asyncio.run(run())


def create(config: Path, name: str) -> None:
    apply(config, deployment(name))


def test_watching_writes_posts_and_remembers(config: Path, tmp_path: Path, start: Start) -> None:
    posted: list[Any] = []
    arrived = threading.Semaphore(0)

    async def receive(request: Request) -> Response:
        posted.append(json.loads(request.body))
        arrived.release()
        return Response(200)

    url = start(receive).url
    output, checkpoint = tmp_path / "out" / "events.ndjson", tmp_path / "checkpoint"
    flags = ["--emit-initial", "--output", str(output), "--checkpoint", str(checkpoint)]
    flags += ["--kinds", "Deployment", "Job", "--post", url, "--listen", "127.0.0.1:0"]
    create(config, "first")
    collecting = Collecting(config, *flags)
    first = collecting.event()
    assert (first["workload_name"], first["event"]) == ("first", "ADDED")
    assert arrived.acquire(timeout=20)
    health = collecting.err.readline().split()[-1]
    for path, said in (("healthz", "ok"), ("metrics", 'k8s_collect_sink_sent_total{sink="post"}')):
        with urlopen(f"{health}/{path}", timeout=10) as answer:
            assert said in answer.read().decode()
    assert collecting.stop() == 0

    create(config, "second")
    collecting = Collecting(config, *flags)
    assert collecting.event()["workload_name"] == "second"
    assert collecting.stop(signal.SIGINT) == 130
    assert names(output.read_text()) == [("Deployment", "first"), ("Deployment", "second")]
    assert [it["workload_name"] for it in posted] == ["first", "second"]


def test_a_reader_that_leaves_ends_it_quietly(config: Path) -> None:
    collecting = Collecting(config, "--emit-initial")
    create(config, "before")
    collecting.event()
    collecting.out.close()
    create(config, "after")
    assert collecting.process.wait(timeout=20) == 1
    assert collecting.err.read() == ""
    collecting.err.close()


def test_the_rights_of_the_kit_are_enough(config: Path) -> None:
    rights = Path(__file__).parents[2] / "deploy" / "collect" / "rbac.yaml"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "observability"}}
    apply(config, namespace, *(it.value for it in load(rights.read_bytes())))
    account = "system:serviceaccount:observability:k8s-collect"
    create(config, "seen")
    collecting = Collecting(config, "--emit-initial", "--as", account)
    assert collecting.event()["workload_kind"] == "Deployment"
    assert collecting.stop() == 0
    collecting = Collecting(config, "--kinds", "Pod", "--as", account)
    assert collecting.process.wait(timeout=20) == 4
    assert "pods" in collecting.err.read()
    collecting.process.communicate()


def test_the_library_continues_after_its_snapshot(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both calls as the seed of k8s-collect shows them: every argument named, None for defaults."""
    monkeypatch.setenv("KUBECONFIG", str(config))
    cache = SeenCache(ttl_sec=10)
    create(config, "there")
    snapshot = list_and_emit_initial(
        kinds=("Deployment", "Job", "CronJob", "Pod"),
        namespaces=["default"],
        kubeconfig=None,
        ca_file=None,
        verify_ssl=None,
        seen_cache=cache,
    )
    request = next(request for request in snapshot if request.workload_name == "there")
    assert isinstance(request, InferenceRequest)
    assert request.containers == [ContainerSpec(name="main", image="web:1", req_cpu_mcpu=100)]
    assert InferenceRequest.model_validate_json(request.model_dump_json()) == request
    create(config, "meanwhile")
    stream = stream_inference_requests(
        kinds=("Deployment", "Job", "CronJob"),
        namespaces=["default"],
        kubeconfig=None,
        ca_file=None,
        verify_ssl=None,
        seen_cache=cache,
    )
    request = next(stream)
    assert (request.workload_name, request.event) == ("meanwhile", "ADDED")
    stream.close()  # type: ignore[attr-defined] # a generator, which callers need not know


def test_the_module_has_every_name_of_the_package() -> None:
    assert k8s_collect.__all__ == kvestigate.collect.__all__


def test_the_module_is_the_command_too() -> None:
    command = [sys.executable, "-m", "k8s_collect", "from-file", "-"]
    done = subprocess.run(command, input=MANIFEST, capture_output=True, text=True, check=True)
    assert names(done.stdout) == [("Job", "train"), ("Pod", "web")]


def test_the_library_tells_what_is_wrong(config: Path) -> None:
    with pytest.raises(UsageError, match="'Service' is not a known kind"):
        list(list_and_emit_initial(kinds=("Service",), kubeconfig=str(config)))


def test_the_models_are_where_they_are_documented() -> None:
    code = "from k8s_collect.models import ContainerSpec, InferenceRequest as R; print(R.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "InferenceRequest\n"


@pytest.mark.parametrize("broken", [False, True])
def test_a_missing_configuration_is_told_as_documented(tmp_path: Path, broken: bool) -> None:
    message = "Kubernetes configuration could not be loaded"
    environ = {"HOME": str(tmp_path), "PATH": ""}
    if broken:
        (tmp_path / "config").write_text("clusters: 7")
        environ["KUBECONFIG"] = str(tmp_path / "config")
    command = [sys.executable, "-m", "k8s_collect", "watch"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 3
    assert done.stderr.startswith(f"error: {message}: ")
    code = "import k8s_collect; list(k8s_collect.list_and_emit_initial())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environ
    )
    assert f"NoCluster: {message}: " in done.stderr

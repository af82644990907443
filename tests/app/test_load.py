"""Apps are read from files and written back; mistakes are told with field, value and way out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.app import (
    AppLoadError,
    AppSpec,
    dump_app,
    load_app,
    load_app_friendly,
    resolve_shared_config_files,
    spec_hash,
)
from kvestigate.app.load import parse_app
from kvestigate.app.spec import ConfigFile, ExposeMode, Lifecycle, Port, Target
from kvestigate.errors import InputError
from kvestigate.kube.documents import Mistakes
from kvestigate.workspace.spec import SourceSpec, StorageMode
from tests.app.conftest import EXAMPLES, FEW, SPECS

MINIMAL = "app: {metadata: {name: web}}"


def test_the_trainer() -> None:
    spec = load_app(EXAMPLES / "trainer.yaml")
    assert spec.full_name == "research/trainer-01"
    assert (spec.target, spec.lifecycle) == (Target.AUTO, Lifecycle.INTERACTIVE)
    assert spec.command == ("python3", "-m", "train")
    assert spec.env == {"OMP_NUM_THREADS": "16"}
    assert (spec.resources.gpu, spec.resources.memory) == (2, "64Gi")
    assert spec.workspace.node == "gpu-node-7"
    assert spec.workspace.storage.mode is StorageMode.HYBRID
    assert spec.workspace.sources == (SourceSpec("./code", "code", ("__pycache__",)),)


def test_little_is_enough() -> None:
    spec = parse_app(MINIMAL)
    assert spec.full_name == "default/web"
    assert spec.k8s.expose is ExposeMode.CLUSTER


def test_short_forms(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("x = 1\n")
    path = tmp_path / "app.yaml"
    path.write_text(
        "app: {metadata: {name: web}, k8s: {ports: [80]}, resources: {cpu: 4}, "
        "env: {NUM: 4}, shared_config_files: [a.toml]}"
    )
    spec = load_app(path)
    assert spec.k8s.ports == (Port(80),)
    assert (spec.resources.cpu, spec.env) == ("4", {"NUM": "4"})
    assert spec.shared_config_files == (ConfigFile(name="a.toml", content="x = 1\n"),)


@FEW
@given(SPECS)
def test_what_is_dumped_is_loaded_again(spec: AppSpec) -> None:
    again = parse_app(dump_app(spec))
    assert again == spec
    assert spec_hash(again) == spec_hash(spec)


@pytest.mark.parametrize(
    ("text", "path", "message", "hint"),
    [
        ("app: {}", "metadata", "the field is required", ""),
        ("web: {}", "app", "the field is required", "an App is `app:"),
        ("metadata: {name: web}", "app", "the field is required", "put all of it under app:"),
        (MINIMAL + "\nkind: App", "kind", "no such field", "all is under app:"),
        ("app: {metadata: {name: web}, lifecyle: batch}", "lifecyle", "no such field", "lifecycle"),
        (
            "app: {metadata: {name: web}, lifecycle: bach}",
            "lifecycle",
            "'bach' is none of service, batch, interactive",
            "did you mean batch?",
        ),
        ("app: {metadata: {name: Web_1}}", "metadata.name", "'Web_1': ", ""),
        (f"app: {{metadata: {{name: {'a' * 49}}}}}", "metadata.name", "has 49 characters", "48"),
        (
            "app: {metadata: {name: web, labels: {kvestigate.dev/app: x}}}",
            "metadata.labels.kvestigate.dev/app",
            "kvestigate sets this one itself",
            "",
        ),
        (
            "app: {metadata: {name: web}, api_version: v2}",
            "api_version",
            "'v2' is not known",
            "write v1",
        ),
        (
            "app: {metadata: {name: web}, resources: {gpu: two}}",
            "resources.gpu",
            "'two' is not a whole number",
            "",
        ),
        (
            "app: {metadata: {name: web}, resources: {gpu: -1}}",
            "resources.gpu",
            "-1 is not from 0",
            "",
        ),
        (
            "app: {metadata: {name: web}, resources: {memory: 64GB}}",
            "resources.memory",
            "quantity '64GB'",
            "1.5Gi",
        ),
        (
            "app: {metadata: {name: web}, resources: {cpu: 0}}",
            "resources.cpu",
            "'0' is not more than 0",
            "leave it out",
        ),
        ("app: {metadata: {name: web}, env: {A=B: x}}", "env.A=B", "'A=B': ", ""),
        ("app: {metadata: {name: web}, command: ['']}", "command[0]", "name is empty", ""),
        (
            "app: {metadata: {name: web}, workspace: {storage: {tmpfs_size: lots}}}",
            "workspace.storage.tmpfs_size",
            "'lots' is not a size",
            "500G",
        ),
        (
            "app: {metadata: {name: web}, workspace: {root: opt}}",
            "workspace.root",
            "'opt' cannot be the directory of workspaces",
            "absolute",
        ),
        (
            "app: {metadata: {name: web}, workspace: {sources: [{local: ., subdir: ../x}]}}",
            "workspace.sources[0].subdir",
            "'../x' is not a directory inside a workspace",
            "relative",
        ),
        (
            "app: {metadata: {name: web}, resources: {gpu: 3}, workspace: {gpu_indices: [0]}}",
            "workspace.gpu_indices",
            "1 GPUs, and resources.gpu says 3",
            "make them agree",
        ),
        (
            "app: {metadata: {name: web}, k8s: {ports: [0]}}",
            "k8s.ports[0].port",
            "0 is not from 1 to 65535",
            "",
        ),
        (
            "app: {metadata: {name: web}, k8s: {ports: [80, 80]}}",
            "k8s.ports",
            "80/TCP is given",
            "",
        ),
        (
            "app: {metadata: {name: web}, k8s: {ports: [{port: 1, protocol: tcp}]}}",
            "k8s.ports[0].protocol",
            "'tcp' is none of TCP, UDP, SCTP",
            "did you mean TCP?",
        ),
        (
            "app: {metadata: {name: web}, k8s: {health_path: /ok}}",
            "k8s.health_path",
            "there is no port to ask",
            "add k8s.ports",
        ),
        (
            "app: {metadata: {name: web}, k8s: {tolerations: [{value: x}]}}",
            "k8s.tolerations[0].key",
            "is missing",
            "Exists",
        ),
        (
            "app: {metadata: {name: web}, k8s: {volumes: {data: claim}}}",
            "k8s.volumes.data",
            "not absolute",
            "",
        ),
        (
            "app: {metadata: {name: web}, shared_config_files: [{name: a}]}",
            "shared_config_files[0]",
            "one of local and content",
            "",
        ),
        (
            "app: {metadata: {name: web}, shared_config_files: [a/x, b/x]}",
            "shared_config_files",
            "file x is given 2 times",
            "",
        ),
        (
            "app: {metadata: {name: web}, distributed: {shards: 0}}",
            "distributed.shards",
            "0 is not from 1",
            "",
        ),
        (
            "app: {metadata: {name: web}, distributed: {shards: 2}, k8s: {replicas: 3}}",
            "k8s.replicas",
            "the shards are the replicas",
            "",
        ),
    ],
)
def test_a_mistake_is_told(text: str, path: str, message: str, hint: str) -> None:
    with pytest.raises(Mistakes) as caught:
        parse_app(text)
    [problem] = caught.value.problems
    assert problem.path == path
    assert message in problem.message
    assert hint in problem.hint


BROKEN = """\
app:
  metadata:
    name: Web
  resources: {gpu: -1}
  k8s:
    ports:
      - port: 80
      - port: 99999
"""


def test_all_mistakes_are_told_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "app.yaml"
    path.write_text(BROKEN)
    with pytest.raises(AppLoadError) as caught:
        load_app_friendly(path)
    first, *lines = caught.value.message.splitlines()
    assert first == f"{path}: 3 mistakes"
    assert [line.split(": ")[:2] for line in lines] == [
        [f"{path}:3", "metadata.name"],
        [f"{path}:4", "resources.gpu"],
        [f"{path}:8", "k8s.ports[1].port"],
    ]


def test_the_first_mistake_is_the_message(tmp_path: Path) -> None:
    path = tmp_path / "app.yaml"
    path.write_text(BROKEN)
    with pytest.raises(AppLoadError, match=r"metadata\.name: 'Web': .* \(and 2 more\)$") as caught:
        load_app(path)
    assert len(caught.value.problems) == 3
    assert caught.value.where == str(path)


def test_one_mistake_keeps_its_hint(tmp_path: Path) -> None:
    path = tmp_path / "app.yaml"
    path.write_text("# an App\n" + MINIMAL.replace("name", "nmae"))
    with pytest.raises(AppLoadError) as caught:
        load_app_friendly(path)
    assert [it.hint for it in caught.value.problems] == ["did you mean metadata.name?", ""]
    path.write_text("# an App\napp: {metadata: {name: web}, target: pods}")
    with pytest.raises(AppLoadError) as caught:
        load_app_friendly(path)
    assert caught.value.message == f"{path}:2: target: 'pods' is none of workspace, k8s, auto"
    assert caught.value.hint == "there are: auto, k8s, workspace"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "shared_config_files\\[0\\].local: .*a.toml: cannot be read: No such file"),
        ({"a.toml": b"\xff"}, "'a.toml': byte 0 is not UTF-8"),
        ({"a.toml": b"x" * (1 << 20) + b"x"}, "larger than 1 MiB"),
    ],
)
def test_config_files_that_cannot_be_read(
    tmp_path: Path, files: dict[str, bytes], message: str
) -> None:
    path = tmp_path / "app.yaml"
    path.write_text("app: {metadata: {name: web}, shared_config_files: [a.toml]}")
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(AppLoadError, match=message):
        load_app(path)


def test_config_files_of_an_app_that_is_no_file(tmp_path: Path) -> None:
    spec = parse_app("app: {metadata: {name: web}, shared_config_files: [a.toml, {local: b}]}")
    with pytest.raises(AppLoadError, match=r"a\.toml: cannot be read.*\(and 1 more\)"):
        resolve_shared_config_files(spec, tmp_path)
    for name in ("a.toml", "b"):
        (tmp_path / name).write_text(name)
    files = resolve_shared_config_files(spec, tmp_path).shared_config_files
    assert [(it.name, it.content) for it in files] == [("a.toml", "a.toml"), ("b", "b")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds 0 documents"),
        (f"{MINIMAL}\n---\n{MINIMAL}", "holds 2 documents"),
        ("a: [", "a: \\["),
    ],
)
def test_what_is_no_single_document(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "app.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_app_friendly(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml: cannot be read: No such file"):
        load_app(tmp_path / "none.yaml")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        spec = parse_app(text)
    except (Mistakes, InputError):
        return
    assert spec.metadata.name

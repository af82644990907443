"""Manifests from files, and what becomes of bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.collect.documents import Problem, Reading, documents, expand
from kvestigate.collect.kinds import parse_kind_path
from kvestigate.collect.record import Record
from kvestigate.errors import InputError

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
spec:
  template:
    spec:
      containers:
      - name: main
        image: web:1
        resources:
          requests: {{cpu: 1, memory: 1.5Gi}}
          limits:
            nvidia.com/gpu: 2
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"


def deployment(name: str) -> str:
    return DEPLOYMENT.format(name=name)


def names(found: list[Record | Problem]) -> list[str]:
    return [it.workload_name if isinstance(it, Record) else it.message for it in found]


def of_text(text: str) -> list[Record | Problem]:
    return list(Reading().of_text(text, "file"))


def test_numbers_are_quantities_too() -> None:
    (record,) = of_text(deployment("web"))
    assert isinstance(record, Record)
    assert (record.containers[0].req_cpu_mcpu, record.containers[0].req_mem_mib) == (1000, 1536)
    assert (record.gpu_count, record.namespace) == (2, "default")
    assert (record.id, record.event) == (None, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("# Source: chart/templates/empty.yaml\n---\n# nothing\n", []),
        (SERVICE, []),
        (f"%YAML 1.1\n---\n{deployment('a')}...\n---\n{SERVICE}---\n{deployment('b')}", ["a", "b"]),
        (
            '{"kind":"DeploymentList","apiVersion":"apps/v1","items":[{"metadata":{"name":"a"}}]}',
            ["a"],
        ),
        (
            '{"kind":"List","items":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}, 7]}',
            ["a", "file:1: not a manifest: apiVersion or kind is missing"],
        ),
        ("just text", ["file:1: not a manifest: apiVersion or kind is missing"]),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {}\n",
            ["file:1: Pod: metadata.name is missing"],
        ),
        (
            "\n\napiVersion: v1\nkind: Pod\nmetadata: {name: [x]}\n",
            ["file:3: Pod: not a Pod: Expected `str`, got `array` - at `$.metadata.name`"],
        ),
    ],
)
def test_what_a_text_holds(text: str, expected: list[str]) -> None:
    assert names(of_text(text)) == expected


def test_a_bad_document_is_named_by_its_line_and_the_rest_goes_on() -> None:
    bad = "metadata:\n  name: x\n\tbad: tab\n"
    text = f"{deployment('a')}---\n{bad}---\n{deployment('b')}"
    first, problem, last = names(of_text(text))
    assert (first, last) == ("a", "b")
    line = text[: text.index("\tbad")].count("\n") + 1
    assert problem.startswith(f"file:{line}:")


def test_a_bad_quantity_is_named() -> None:
    (problem,) = names(of_text(deployment("a").replace("1.5Gi", "lots")))
    assert problem.startswith("file:1: quantity 'lots'")


def test_the_line_of_a_document_is_that_of_the_file() -> None:
    text = f"{SERVICE}---\n\n# comment\n{SERVICE}---\n{SERVICE}"
    lines = [it.line for it in documents(text, "file") if not isinstance(it, Problem)]
    assert lines == [1, 7, 11]


def test_files_directories_and_patterns(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("b.yaml", "a.json", "deep/c.yml", "deep/notes.txt"):
        (tmp_path / name).write_text(deployment(Path(name).stem))
    everything = [str(tmp_path / name) for name in ("a.json", "b.yaml", "deep/c.yml")]
    assert expand(str(tmp_path)) == everything
    assert expand(str(tmp_path / "*.yaml")) == everything[1:2]
    assert expand(str(tmp_path / "**/*.yml")) == everything[2:]
    assert names(list(Reading().records([str(tmp_path)]))) == ["a", "b", "c"]
    with pytest.raises(InputError, match="no manifest file has this name"):
        expand(str(tmp_path / "*.toml"))


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(b"a: 1\nb: \xff\n")
    (problem,) = names(list(Reading().records([str(file)])))
    assert problem == f"{file}:2: not text: byte 8 is not UTF-8"


def test_custom_kinds_are_read_by_their_path() -> None:
    kind = parse_kind_path("example.com/v1/Fleet:.spec.members.*.pod")
    text = (
        "apiVersion: example.com/v1beta1\nkind: Fleet\nmetadata: {name: f}\n"
        "spec: {members: [{pod: {spec: {containers: [{name: one}]}}}]}\n"
    )
    (record,) = Reading((kind,)).of_text(text, "file")
    assert isinstance(record, Record)
    assert [it.name for it in record.containers] == ["one"]


@given(st.text(alphabet="ab:-{}[]\n \t%'\"&*!|>#.", max_size=60) | st.text(max_size=40))
def test_no_text_at_all_raises(text: str) -> None:
    for found in of_text(text):
        assert isinstance(found, Record | Problem)

"""Field paths: the text of validation errors, and reading objects by path."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import InputError
from kvestigate.kube import fieldpaths
from kvestigate.kube.fieldpaths import Path

POD: dict[str, Any] = {
    "metadata": {"name": "web", "labels": {"app": "web", "example.com/tier": "a", "0": "zero"}},
    "spec": {
        "containers": [
            {"name": "a", "image": "one", "cpu": 1, "ready": True},
            {"name": "b", "image": "two", "cpu": 2.5, "ready": False},
            {"name": "c(1)", "cpu": 3},
        ],
        "replicas": {"Master": {"template": 1}, "Worker": {"template": 2}},
        "empty": None,
    },
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Idle"}]},
}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (Path("spec"), "spec"),
        (Path("spec").child("containers").index(0).child("image"), "spec.containers[0].image"),
        (Path("metadata").child("labels").key("foo/bar"), "metadata.labels[foo/bar]"),
        (Path("spec").child("template", "spec"), "spec.template.spec"),
        (Path().child("kind"), "kind"),
        (Path().index(2).key("x"), "[2][x]"),
        (Path(), ""),
    ],
)
def test_text_of_a_path(path: Path, text: str) -> None:
    assert str(path) == text


def test_extending_a_path_leaves_it_as_it_was() -> None:
    spec = Path("spec")
    left, right = spec.child("a"), spec.child("b")
    assert (str(spec), str(left), str(right)) == ("spec", "spec.a", "spec.b")
    assert left == Path("spec").child("a")
    assert len({left, Path("spec").child("a"), right}) == 2


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("metadata.name", ["web"]),
        (".metadata.name", ["web"]),
        ("{.metadata.name}", ["web"]),
        ("$.metadata.name", ["web"]),
        ("metadata.labels[app]", ["web"]),
        ("metadata.labels[example.com/tier]", ["a"]),
        ("metadata.labels['example.com/tier']", ["a"]),
        ('metadata.labels["example.com/tier"]', ["a"]),
        (r"metadata.labels.example\.com/tier", ["a"]),
        ("metadata.labels[0]", ["zero"]),
        ("spec.containers[0].image", ["one"]),
        ("spec.containers[-1].name", ["c(1)"]),
        ("spec.containers[9].name", []),
        ("spec.containers[*].image", ["one", "two"]),
        ("spec.containers.*.image", ["one", "two"]),
        ("spec.replicas.*.template", [1, 2]),
        ("spec.replicas[*].template", [1, 2]),
        ("spec.empty", [None]),
        ("spec.empty.more", []),
        ("spec.nothing.more", []),
        ("metadata.name.more", []),
        ("metadata.name[*]", []),
        ("metadata.name[0]", []),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Ready')].status", ["True"]),
        ('.status.conditions[?( @.type != "Ready" )].type', ["Idle"]),
        (".status.conditions[?(@.status)].type", ["Ready"]),
        (".spec.containers[?(@.cpu>1)].name", ["b", "c(1)"]),
        (".spec.containers[?(@.cpu>=1)].name", ["a", "b", "c(1)"]),
        (".spec.containers[?(@.cpu<2.5)].name", ["a"]),
        (".spec.containers[?(@.cpu<=2.5)].name", ["a", "b"]),
        (".spec.containers[?(@.ready==true)].name", ["a"]),
        (".spec.containers[?(@.ready==false)].name", ["b"]),
        (".spec.containers[?(@.ready==1)].name", []),
        (".spec.containers[?(@.cpu=='1')].name", []),
        (".spec.containers[?(@.cpu!='1')].name", ["a", "b", "c(1)"]),
        (".spec.containers[?(@.cpu<'z')].name", []),
        (".spec.containers[?(@.name=='c(1)')].cpu", [3]),
        (".spec.containers[?(@.name==a)].cpu", [1]),
        (".spec.replicas[?(@.template==2)].template", [2]),
    ],
)
def test_find(text: str, values: list[Any]) -> None:
    assert list(fieldpaths.find(POD, text)) == values
    assert fieldpaths.get(POD, text, "absent") == (values[0] if values else "absent")


@pytest.mark.parametrize("text", ["", ".", "$", "{}", "{.}"])
def test_the_whole_object(text: str) -> None:
    assert fieldpaths.get(POD, text) is POD


def test_a_built_path_reads_what_it_names() -> None:
    path = Path("spec").child("containers").index(1).child("image")
    assert fieldpaths.get(POD, path) == "two"
    assert fieldpaths.get(POD, Path("metadata").child("labels").key("example.com/tier")) == "a"


@pytest.mark.parametrize(
    "text",
    [
        *("..a", "a..b", "a.", "a]", "a[", "a[]", "a[?]", "a[?()]", "a[?(b)]", "a[?(@.b=)]"),
        *("a[?(@.b==)]", "a['b]", "{.a", "a[1", "a[?(@..b)]"),
    ],
)
def test_a_mistake_is_named_with_a_valid_form(text: str) -> None:
    with pytest.raises(InputError) as refusal:
        fieldpaths.parse(text)
    assert repr(text) in refusal.value.message
    assert ".spec.containers[*].image" in (refusal.value.hint or "")


@given(st.text(max_size=20) | st.text(".*[]?()@='\"ab01\\{}$<", max_size=20))
def test_garbage_is_refused_and_never_breaks(text: str) -> None:
    try:
        query = fieldpaths.parse(text)
    except InputError:
        return
    assert all(True for _ in query.find(POD))

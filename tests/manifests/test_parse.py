"""What is a manifest, and what is said of what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import InputError
from kvestigate.manifests.model import Source
from kvestigate.manifests.parse import parse

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


def test_documents_and_lists_become_manifests_that_know_their_place() -> None:
    text = f"""{MAP}---
# nothing but a comment
---
apiVersion: v1
kind: List
items:
- {{apiVersion: apps/v1, kind: Deployment, metadata: {{name: b, namespace: web}}}}
"""
    found = parse([Source("app.yaml", text), Source("-", MAP.replace("a}", "c}"))])
    assert [(it.group, it.kind, it.namespace, it.name, it.where) for it in found] == [
        ("", "ConfigMap", "", "a", "app.yaml:1"),
        ("apps", "Deployment", "web", "b", "app.yaml:7"),
        ("", "ConfigMap", "", "c", "-:1"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the input has no objects"),
        ("- a\n", "x:1: not a manifest"),
        ("kind: Pod\n", "x:1: apiVersion is missing"),
        ("apiVersion: v1\n", "x:1: kind is missing"),
        ("apiVersion: v1\nkind: 7\n", "x:1: kind is missing"),
        ("apiVersion: v1\nkind: Pod\n", "x:1: the Pod has no metadata"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {}\n", "x:1: the Pod has no metadata.name"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: 5}\n", "x:1: the Pod has no metadata.name"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n", "has generateName"),
        (MAP.replace("a}", "a, namespace: 5}"), "metadata.namespace of 'a' is not text"),
        (f"{MAP}---\n{MAP}", "x:5: ConfigMap 'a' is also at x:1"),
        ("a: [", "x:2:1: did not find"),
    ],
)
def test_what_is_no_manifest_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        parse([Source("x", text)])
    assert said in refused.value.message


def test_a_broken_secret_is_not_quoted() -> None:
    text = "apiVersion: v1\nkind: Secret\nstringData:\n  password: 'hunter2\n"
    with pytest.raises(InputError) as refused:
        parse([Source("s.yaml", text)])
    assert "hunter2" not in refused.value.message
    assert refused.value.message.startswith("s.yaml:4")


@pytest.mark.parametrize("field", ["data", "stringData"])
@pytest.mark.parametrize("value", ["424242", "[424242]", "{a: 424242}", "true"])
def test_what_is_no_text_in_a_secret_is_not_sent_and_not_quoted(field: str, value: str) -> None:
    text = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\n{field}: {{pin: {value}}}\n"
    with pytest.raises(InputError) as refused:
        parse([Source("s.yaml", text)])
    assert refused.value.message == f"s.yaml:1: {field}.pin of Secret 's' is not text"


def test_the_values_of_a_secret_are_a_mapping() -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: [hunter2]\n"
    with pytest.raises(InputError, match=r"s\.yaml:1: data of Secret 's' is not a mapping"):
        parse([Source("s.yaml", text)])


@given(st.text(max_size=60))
def test_any_text_is_manifests_or_an_input_error(text: str) -> None:
    try:
        found = parse([Source("x", text)])
    except InputError:
        return
    assert all(it.name for it in found)

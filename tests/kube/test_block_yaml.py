"""Kubeconfigs as kubectl writes them: read without PyYAML, and to the same value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kvestigate.errors import InputError
from kvestigate.kube import block_yaml
from kvestigate.kube.yaml_documents import load_first
from kvestigate.render.yaml_text import written

KUBECONFIG = """\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==
    server: https://127.0.0.1:6443
  name: kind-kind
# a comment
contexts:
  - context: {cluster}
    name: "kind-kind"
current-context: 'kind-kind'
kind: Config
preferences: {}
users:
- name: kind-kind
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      args:
      - get-token
      - --cluster=x
      command: aws
      env: null
      provideClusterInfo: false
"""


def whole(text: str) -> Any:
    loaded = load_first(text.encode(), "config")
    return None if loaded is None else loaded[0].value


def test_kubectls_own_style_needs_no_pyyaml() -> None:
    text = KUBECONFIG.replace("{cluster}", "{}").replace("- --cluster=x", '- "--cluster=x"')
    assert block_yaml.read(text) == whole(text) is not None


def test_json_needs_no_pyyaml_either() -> None:
    text = '{"clusters": [{"name": "a b", "cluster": {"server": "https://x"}}], "n": 1, "o": null}'
    assert block_yaml.read(text) == whole(text) is not None


@pytest.mark.parametrize(
    "unusual",
    [
        '{"a": 1, "a": 2}',
        '{"a": 1.0}',
        '{"a": NaN}',
        '{"a": "b"} {"c": "d"}',
        "{a: b}",
        "{}",
        "a: {b: c}",
        "a: &x b",
        "a: |\n  b",
        "a: b c",
        "a: b # c",
        "a: b\n c: d",
        "a: b\n  c",
        "a: 'b''c'",
        'a: "b\\n"',
        "a: 1\na: 2",
        "yes: 1",
        "a:\tb",
        "- a",
        "a\n",
        "a:\n- - b",
        "a:\n  - b\n - c",
        "a:\n   b: c\n  d: e",
        "a: .inf",
        "--- \na: b",
        "a: b\n---\nc: d",
        "a: !!str b",
        "a: b:",
        "",
    ],
)
def test_anything_else_is_left_to_pyyaml(unusual: str) -> None:
    assert block_yaml.read(unusual) is None


NAMES = st.text("abyn-.:/ #'\"{}[]&*!|>%@`,?=~01\n", max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=3))
def test_what_is_written_is_read_as_pyyaml_reads_it(value: dict[str, Any]) -> None:
    text = written(value)
    found = block_yaml.read(text)
    assert found is None or found == whole(text)


LINES = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from(["", "- ", "-", "- - "]),
        st.sampled_from(["a", "b", "a:", "b: c", "c: '1'", "d: 1", "e: {}", "# x", "", "a: ~"]),
    ).map(lambda parts: " " * parts[0] + parts[1] + parts[2]),
    max_size=6,
)


@given(LINES)
@example(["a:", "- b: c", "  d: 1", "- a"])
@example(["a:", "  - b", "  b: c"])
def test_no_arrangement_of_lines_is_read_differently(lines: list[str]) -> None:
    text = "\n".join(lines)
    found = block_yaml.read(text)
    if found is not None:
        try:
            assert found == whole(text)
        except InputError as error:
            pytest.fail(f"PyYAML refuses {text!r}: {error}")

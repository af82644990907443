"""Results for programs."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.kube.yaml_documents import load
from kvestigate.render.encode import to_json, to_yaml


@dataclass(frozen=True, slots=True)
class Pod:
    name: str
    labels: dict[str, str]
    ports: tuple[int, ...] = ()


POD = Pod("web", {"app": "web"}, (80, 443))


def test_json_is_indented_by_two_and_ended() -> None:
    assert to_json(POD) == (
        b'{\n  "name": "web",\n  "labels": {\n    "app": "web"\n  },\n'
        b'  "ports": [\n    80,\n    443\n  ]\n}\n'
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (POD, "name: web\nlabels:\n  app: web\nports:\n- 80\n- 443\n"),
        ({"z": 1, "a": None}, "z: 1\na: null\n"),
        ({"script": "one\ntwo\n"}, "script: |\n  one\n  two\n"),
        ({"on": "yes", "version": "1.10"}, "'on': 'yes'\nversion: '1.10'\n"),
        ({"a": [], "b": {}}, "a: []\nb: {}\n"),
        ({"same": [POD.labels, POD.labels]}, "same:\n- app: web\n- app: web\n"),
        ({"long": "word " * 60}, f"long: '{'word ' * 60}'\n"),
    ],
)
def test_yaml_looks_like_kubectl(value: object, shown: str) -> None:
    assert to_yaml(value) == shown


DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(DATA)
def test_yaml_and_json_say_the_same(value: object) -> None:
    assert yaml.safe_load(to_yaml(value)) == msgspec.json.decode(to_json(value)) == value


WORDS = st.from_regex(r"[-+]?[0-9.]{0,3}[eEoxb_y]?[0-9a-f]{0,3}", fullmatch=True)


@given(st.dictionaries(st.text() | WORDS, st.text() | WORDS))
def test_kubectl_reads_yaml_as_it_was_meant(value: dict[str, str]) -> None:
    documents = load(to_yaml({"all": value}))
    assert [it.value for it in documents] == [{"all": value}]


@pytest.mark.parametrize("word", ["y", "N", "on", "1e3", "0o17", "010", "1_000", "", "~", ".inf"])
def test_text_that_looks_like_something_else_is_quoted(word: str) -> None:
    assert to_yaml({"a": word}) == f"a: '{word}'\n"

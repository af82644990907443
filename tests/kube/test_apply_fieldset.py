"""Sets of field paths: the algebra of sets, in the form of managed fields."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.kube.apply import fieldset
from kvestigate.kube.apply.fieldset import FieldSet, Malformed

Path = tuple[str, ...]

STEPS = ("f:a", "f:b", 'k:{"name":"x"}', 'k:{"name":"y"}', "v:1", 'v:"1"', "i:0")
PATHS = st.sets(st.lists(st.sampled_from(STEPS), min_size=1, max_size=4).map(tuple), max_size=12)


def made(paths: set[Path]) -> FieldSet:
    """A set as the model knows it, written step by step."""
    fields: FieldSet = {}
    for path in paths:
        node = fields
        for step in path:
            node = node.setdefault(step, {})
        node["."] = {}
    return tidy(fields)


def tidy(node: FieldSet) -> FieldSet:
    return {} if set(node) == {"."} else {step: tidy(inner) for step, inner in node.items()}


def members(fields: FieldSet) -> set[Path]:
    found = list(fieldset.paths(fields))
    assert len(found) == len(set(found))
    return set(found)


@given(PATHS)
def test_a_set_has_the_paths_that_it_was_made_of(paths: set[Path]) -> None:
    assert members(made(paths)) == paths


@given(PATHS, PATHS)
def test_the_algebra_is_that_of_sets(left: set[Path], right: set[Path]) -> None:
    ours, theirs = made(left), made(right)
    assert fieldset.union(ours, theirs) == made(left | right)
    assert fieldset.intersection(ours, theirs) == made(left & right)
    assert fieldset.difference(ours, theirs) == made(left - right)


@given(PATHS, PATHS)
def test_without_takes_what_is_under_a_path_along(left: set[Path], right: set[Path]) -> None:
    def covered(path: Path) -> bool:
        return any(path[: len(other)] == other for other in right)

    rest = {path for path in left if not covered(path)}
    assert fieldset.without(made(left), made(right)) == made(rest)


@given(PATHS, PATHS)
def test_nothing_changes_the_sets_it_is_given(left: set[Path], right: set[Path]) -> None:
    ours, theirs = made(left), made(right)
    for operation in (fieldset.union, fieldset.intersection, fieldset.difference, fieldset.without):
        operation(ours, theirs)
    assert (ours, theirs) == (made(left), made(right))


@given(PATHS)
def test_a_set_that_was_sent_is_read_as_it_was(paths: set[Path]) -> None:
    assert fieldset.parse(made(paths)) == made(paths)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({'k:{"b":1, "a":"x"}': {}}, {'k:{"a":"x","b":1}': {}}),
        ({"f:a": {".": {}}}, {"f:a": {}}),
        ({"f:a": {}, "x:future": {"f:b": {}}}, {"f:a": {}}),
        ({'v: "x"': {}, 'v:"x"': {}}, {'v:"x"': {}}),
        ({'k:{"name":"a<b"}': {}}, {'k:{"name":"a\\u003cb"}': {}}),
    ],
)
def test_other_ways_to_write_a_set_are_brought_to_one(sent: Any, read: FieldSet) -> None:
    assert fieldset.parse(sent) == read


@pytest.mark.parametrize(
    "sent",
    ["f:a", ["f:a"], {"f:a": 1}, {"a": {}}, {"": {}}, {"k:[1]": {}}, {"v:x": {}}, {"i:x": {}}],
)
def test_what_is_no_set_is_refused(sent: Any) -> None:
    with pytest.raises(Malformed):
        fieldset.parse(sent)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("f:spec", "f:replicas"), ".spec.replicas"),
        (("f:a", 'k:{"name":"x"}', "f:b"), '.a[name="x"].b'),
        (('k:{"containerPort":80,"protocol":"TCP"}',), '[containerPort=80,protocol="TCP"]'),
        (("f:finalizers", 'v:"x/y"'), '.finalizers[="x/y"]'),
        (("i:3",), "[3]"),
    ],
)
def test_paths_are_shown_as_upstream_shows_them(path: Path, text: str) -> None:
    assert fieldset.text(path) == text


def test_paths_come_level_by_level_and_by_value() -> None:
    fields: FieldSet = {
        "f:ports": {'k:{"port":443}': {"f:name": {}}, 'k:{"port":80}': {}, 'k:{"port":9}': {}},
        "f:b": {},
        "f:a": {".": {}, "f:z": {}},
    }
    assert [fieldset.text(path) for path in fieldset.paths(fields)] == [
        ".a",
        ".b",
        ".a.z",
        ".ports[port=9]",
        ".ports[port=80]",
        ".ports[port=443].name",
    ]

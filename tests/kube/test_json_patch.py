"""JSON patch: the RFC's examples, and the leniencies and errors of kube-apiserver."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import BadRequest, Invalid, RequestEntityTooLarge
from kvestigate.kube.patches import json as json_patch
from kvestigate.kube.patches.values import same

Operation = dict[str, Any]


def op(name: str, path: str, **members: Any) -> Operation:
    source = {"from": members.pop("source")} if "source" in members else {}
    return {"op": name, "path": path, **source, **members}


@pytest.mark.parametrize(
    ("document", "operations", "result"),
    [
        # RFC 6902, appendix A
        ({"foo": "bar"}, [op("add", "/baz", value="qux")], {"foo": "bar", "baz": "qux"}),
        ({"foo": ["a", "b"]}, [op("add", "/foo/1", value="q")], {"foo": ["a", "q", "b"]}),
        ({"baz": 1, "foo": 2}, [op("remove", "/baz")], {"foo": 2}),
        ({"foo": ["a", "q", "b"]}, [op("remove", "/foo/1")], {"foo": ["a", "b"]}),
        ({"baz": 1, "foo": 2}, [op("replace", "/baz", value=3)], {"baz": 3, "foo": 2}),
        (
            {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
            [op("move", "/qux/thud", source="/foo/waldo")],
            {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
        ),
        (
            {"foo": ["all", "grass", "cows", "eat"]},
            [op("move", "/foo/3", source="/foo/1")],
            {"foo": ["all", "cows", "eat", "grass"]},
        ),
        (
            {"baz": "qux", "foo": ["a", 2, "c"]},
            [op("test", "/baz", value="qux"), op("test", "/foo/1", value=2)],
            {"baz": "qux", "foo": ["a", 2, "c"]},
        ),
        ({"foo": 1}, [op("add", "/child", value={"g": {}})], {"foo": 1, "child": {"g": {}}}),
        ({"foo": 1}, [op("add", "/baz", value=2, xyz=3)], {"foo": 1, "baz": 2}),
        ({"/": 9, "~1": 10}, [op("test", "/~01", value=10)], {"/": 9, "~1": 10}),
        ({"foo": ["bar"]}, [op("add", "/foo/-", value=["x"])], {"foo": ["bar", ["x"]]}),
        # the rest of the rules
        ({"a": 1}, [op("add", "/a", value=2)], {"a": 2}),
        ({"a": {"b": 1}}, [op("copy", "/c", source="/a")], {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a": [{"b": 1}, 2]}, [op("replace", "/a/0/b", value=3)], {"a": [{"b": 3}, 2]}),
        ({"a": [[1], 2]}, [op("add", "/a/-2/-", value=3)], {"a": [[1, 3], 2]}),
        ({"a": 1}, [op("replace", "", value={"b": 2})], {"b": 2}),
        ({"a": 1}, [op("replace", "", value=[1])], [1]),
        ({"a": 1}, [op("test", "", value={"a": 1})], {"a": 1}),
        ({"a/b": {"~": 1}}, [op("replace", "/a~1b/~0", value=2)], {"a/b": {"~": 2}}),
        ({"": 1}, [op("replace", "/", value=2)], {"": 2}),
        ({}, [], {}),
        # leniencies
        ({}, [op("replace", "/a", value=1)], {"a": 1}),
        ({}, [op("add", "/a")], {"a": None}),
        ({}, [op("test", "/a", value=None)], {}),
        ({}, [op("copy", "/b", source="/a")], {"b": None}),
        ({"a": [1, 2, 3]}, [op("remove", "/a/-1")], {"a": [1, 2]}),
        ({"a": [1, 2]}, [op("add", "/a/-1", value=3)], {"a": [1, 2, 3]}),
        ({"a": [1, 2]}, [op("replace", "/a/01", value=3)], {"a": [1, 3]}),
        # a copy does not follow its original
        (
            {"a": {"b": {"c": 1}}},
            [
                op("replace", "/a/b/c", value=2),
                op("copy", "/d", source="/a"),
                op("replace", "/a/b/c", value=3),
                op("add", "/d/b/e", value=4),
            ],
            {"a": {"b": {"c": 3}}, "d": {"b": {"c": 2, "e": 4}}},
        ),
    ],
)
def test_apply(document: Any, operations: list[Operation], result: Any) -> None:
    before = json.dumps([document, operations])
    assert same(json_patch.apply(document, operations), result)
    assert json.dumps([document, operations]) == before


@pytest.mark.parametrize(
    ("document", "operation", "cause"),
    [
        ({"baz": "qux"}, op("test", "/baz", value="bar"), "not the one tested for"),
        ({"a": 1}, op("test", "/a", value=True), "not the one tested for"),
        ({"a": 1}, op("test", "/a", value=1.0), "not the one tested for"),
        ({"a": None}, op("test", "/a", value={}), "not the one tested for"),
        ({"foo": "bar"}, op("add", "/baz/bat", value=1), "nothing to enter at 'baz'"),
        ({"foo": "bar"}, op("add", "/foo/bat", value=1), "nothing to enter at 'foo'"),
        ({"a": 1}, op("remove", "/b"), "nothing to remove at '/b'"),
        ({"a": [1]}, op("remove", "/a/1"), "index 1 is outside an array of 1"),
        ({"a": [1]}, op("remove", "/a/-2"), "index -2 is outside an array of 1"),
        ({"a": [1]}, op("add", "/a/2", value=1), "index 2 is outside an array of 2"),
        ({"a": [1]}, op("replace", "/a/1", value=1), "index 1 is outside"),
        ({"a": [1]}, op("replace", "/a/-", value=1), "'-' is not an index"),
        ({"a": [1]}, op("test", "/a/x", value=1), "'x' is not an index"),
        ({"a": 1}, op("add", "", value={}), "names no field"),
        ({"a": 1}, op("remove", ""), "names no field"),
        ({"a": 1}, op("replace", "", value=1), "object or an array"),
        ({"a": 1}, op("copy", "/b", source=""), "names no field"),
        ({"a": 1}, op("move", "/b", source="/c"), "nothing to remove at '/c'"),
        ({"a": {}}, op("move", "/a/b", source="/a"), "nothing to enter at 'a'"),
        ({"a": 1}, op("spam", "/a"), "'spam' is no operation"),
        ({"a": 1}, {"path": "/a"}, "'' is no operation"),
        ({"a": 1}, {"op": None, "path": "/a"}, "'' is no operation"),
        ({"a": 1}, {"op": "remove"}, "remove needs 'path'"),
        ({"a": 1}, {"op": "move", "path": "/b"}, "move needs 'from'"),
    ],
)
def test_what_does_not_apply_is_a_422_whose_hint_tells_why(
    document: Any, operation: Operation, cause: str
) -> None:
    harmless = op("test", "", value=document)
    with pytest.raises(Invalid) as refusal:
        json_patch.apply(document, [harmless, operation])
    assert refusal.value.message == "the server rejected our request due to an error in our request"
    assert (refusal.value.hint or "").startswith("operation 1 of the JSON patch: ")
    assert cause in (refusal.value.hint or "")


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        ({}, "object into Go value of type []handlers.jsonPatchOp"),
        ("add", "string into Go value of type []handlers.jsonPatchOp"),
        (1.5, "number into Go value of type []handlers.jsonPatchOp"),
        ([1], "number into Go value of type handlers.jsonPatchOp"),
        ([{}, []], "array into Go value of type handlers.jsonPatchOp"),
        ([{"op": 1}], "number into Go struct field jsonPatchOp.op of type string"),
        (
            [{"op": "add", "path": {}}],
            "object into Go struct field jsonPatchOp.path of type string",
        ),
        ([{"from": False}], "bool into Go struct field jsonPatchOp.from of type string"),
    ],
)
def test_what_is_no_patch_is_a_400(patch: Any, problem: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        json_patch.apply({}, patch)
    assert refusal.value.message == f"error decoding patch: json: cannot unmarshal {problem}"


def test_too_many_operations_are_a_413() -> None:
    operations = [op("add", "/a", value=1)] * 10_000
    assert json_patch.apply({}, operations) == {"a": 1}
    with pytest.raises(
        RequestEntityTooLarge, match=r"^Request entity too large: .* is 10000, got 10001$"
    ):
        json_patch.apply({}, [*operations, op("remove", "/a")])


@pytest.mark.parametrize(
    ("document", "target"),
    [({"a": ["x" * 100]}, "/a/-"), ({"a": ["x" * 100]}, "/a/0"), ({"a": {}}, "/a/a")],
)
def test_copies_that_swell_a_document_are_stopped(document: Any, target: str) -> None:
    with pytest.raises(Invalid) as refusal:
        json_patch.apply(document, [op("copy", target, source="/a")] * 10_000)
    assert "copy operations" in (refusal.value.hint or "")


def test_what_a_patch_does_not_touch_is_shared() -> None:
    document = {"spec": {"containers": [{"name": "a"}]}, "status": {"phase": "Running"}}
    patched = json_patch.apply(document, [op("replace", "/status/phase", value="Failed")])
    assert patched["spec"] is document["spec"]


names = st.sampled_from(["a", "b", "0", "-", "1"])
values = st.recursive(
    st.integers(0, 2) | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
)
pointers = st.lists(names, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
operations = st.builds(
    lambda name, path, source, value: {"op": name, "path": path, "from": source, "value": value},
    st.sampled_from(["add", "remove", "replace", "move", "copy"]),
    pointers,
    pointers,
    values,
)


@given(st.dictionaries(names, values, max_size=4), st.lists(operations, max_size=6))
def test_operations_together_do_what_they_do_one_by_one(
    document: dict[str, Any], patch: list[Operation]
) -> None:
    before = json.dumps([document, patch])
    stepwise: Any = document
    for operation in patch:
        try:
            # Through text, so that no step can lean on what another one shares.
            stepwise = json.loads(json.dumps(json_patch.apply(stepwise, [operation])))
        except Invalid:
            with pytest.raises(Invalid):
                json_patch.apply(document, patch)
            break
    else:
        assert same(json_patch.apply(document, patch), stepwise)
    assert json.dumps([document, patch]) == before

"""Expressions that make patches; what is told of mistakes was said by kube-apiserver 1.36."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.kube.cel import CompileError, EvalError, compiled
from kvestigate.kube.cel.types import DYN

NAMES = {"object": DYN}


def made(source: str, value: Any = None) -> Any:
    return compiled(source, NAMES, patches=True).run(value)


@pytest.mark.parametrize(
    ("source", "type_", "value"),
    [
        ("Object{}", "Object", {}),
        ("Object{a: 1, a: 2,}", "Object", {"a": 2}),
        ("Object.spec{replicas: object.n + 1}", "Object.spec", {"replicas": 3}),
        ("Object{?a: optional.none(), ?b: optional.of(1)}", "Object", {"b": 1}),
        ("Object{a: Object.a{b: 1}}.a.b", "dyn", 1),
        ("has(Object{a: 1}.b)", "bool", False),
        ("Object{a: 1} == Object{a: 1}", "bool", True),
        ("dyn(Object{a: 1}) == dyn(Object.a{a: 1})", "bool", False),
        ("object.n > 1 ? [] : [JSONPatch{}]", "list(JSONPatch)", []),
        ("[JSONPatch{op: 'add', path: '/a'}][0].path", "string", "/a"),
    ],
)
def test_objects_are_made_by_the_names_of_their_types(source: str, type_: str, value: Any) -> None:
    program = compiled(source, NAMES, patches=True)
    assert str(program.type) == type_
    found = program.run({"n": 2})
    assert (dict(found) if isinstance(found, dict) else found) == value


@pytest.mark.parametrize(
    ("source", "at", "told"),
    [
        ("Object{spec: Foo{}}", 17, "undeclared reference to 'Foo' (in container '')"),
        ("Object{?a: 1}", 12, "expected type 'optional_type(int)' but found 'int'"),
        ("int{}", 4, "'int' is not a message type"),
        ("Object{`a-b`: 1}", 8, "unsupported syntax: '`'"),
        ("Object{a: 1", 12, "Syntax error: mismatched input '<EOF>' expecting {'}', ','}"),
        (
            "[JSONPatch{op: 1}]",
            14,
            "expected type of field 'op' is 'string' but provided type is 'int'",
        ),
        (
            "[JSONPatch{foo: 'add'}]",
            15,
            "expected type of field 'foo' is '' but provided type is 'string'",
        ),
    ],
)
def test_mistakes_are_told_where_they_are(source: str, at: int, told: str) -> None:
    with pytest.raises(CompileError) as error:
        compiled(source, NAMES, patches=True)
    assert str(error.value).startswith(f"ERROR: <input>:1:{at}: {told}\n")


@pytest.mark.parametrize("source", ["Object{}", "[JSONPatch{}]", "jsonpatch.escapeKey('a')"])
def test_only_patches_may_make_objects(source: str) -> None:
    with pytest.raises(CompileError, match="undeclared reference"):
        compiled(source, NAMES)


def test_the_fields_of_an_operation_are_text() -> None:
    with pytest.raises(EvalError, match="unexpected type int64 for JSONPatchType 'op' field"):
        made("[JSONPatch{op: dyn(1)}]")


@given(st.text())
def test_escaped_keys_are_read_back(key: str) -> None:
    escaped = made("jsonpatch.escapeKey(object)", key)
    assert "/" not in escaped
    assert escaped.replace("~1", "/").replace("~0", "~") == key

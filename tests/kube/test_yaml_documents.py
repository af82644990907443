"""Reading manifests as kubectl does; the values in the tables were seen from kubectl 1.36."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import InputError
from kvestigate.kube.yaml_documents import Document, flattened, load


def value_of(scalar: str) -> Any:
    (document,) = load(f"v: {scalar}\n")
    return document.value["v"]


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        *((word, True) for word in ("y", "Y", "yes", "YES", "on", "On", "true", "True", "TRUE")),
        *((word, False) for word in ("n", "N", "no", "No", "off", "OFF", "false", "False")),
        *((word, None) for word in ("", "~", "null", "Null", "NULL")),
        *((word, word) for word in ("tRue", "yEs", "nULL", "=", "<<", "1e", "+", "-x", ".", "0x")),
        ("010", 8),
        ("0o10", 8),
        ("08", 8),
        ("0x1F", 31),
        ("-0X1f", -31),
        ("0b11", 3),
        ("-0b11", -3),
        ("1_000", 1000),
        ("00", 0),
        ("-0", 0),
        ("+1", 1),
        ("1:30", "1:30"),
        ("190:20:30", "190:20:30"),
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5),
        ("1.0", 1),
        ("1e3", 1000),
        ("12e03", 12000),
        ("685.230_15e+03", 685230.15),
        ("100000000000000000000", 100000000000000000000),
        ("18446744073709551615", 18446744073709552000),
        ("1e400", "1e400"),
        ("9" * 5000, "9" * 5000),
        ("'010'", "010"),
        ('"yes"', "yes"),
        ("!!str 1", "1"),
        ("!!int '3'", 3),
        ("!!float 3", 3),
        ("!!bool 'yes'", True),
        ("!!timestamp 2026-01-01", "2026-01-01"),
        ("!!binary YQ==", "a"),
        ("!foo bar", "bar"),
        (
            "{1: a, 1.5: b, yes: c, 0x10: d, 1e3: e}",
            {"1": "a", "1.5": "b", "true": "c", "16": "d", "1000": "e"},
        ),
        ("[a, 1]", ["a", 1]),
        ("&x {a: 1}", {"a": 1}),
        ("|\n  two\n  lines", "two\nlines\n"),
    ],
)
def test_scalars_mean_what_they_mean_to_kubectl(scalar: str, value: Any) -> None:
    found = value_of(scalar)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: @x", "f.yaml:1:4: found character .*: 'a: @x'"),
        ("a: 1\nb: [1\n", r"f.yaml:2:4: did not find expected .*: 'b: \[1'"),
        ("a: 1\nb: [1,", r"f.yaml:3:1: did not find expected node content: 'b: \[1,'"),
        ("a: b: c", "f.yaml:1:5: mapping values are not allowed"),
        ("a: 1\na: 2", "f.yaml:2:1: the key \"a\" is given twice: 'a: 2'"),
        ("x:\n- a: 1\n  b: 2\n  a: 3", 'f.yaml:4:3: the key "a" is given twice'),
        ("yes: 1\ntrue: 2", 'f.yaml:2:1: the key "true" is given twice'),
        ("a: *nope", "f.yaml:1:4: unknown anchor 'nope' referenced"),
        ("a: .inf", "f.yaml:1:4: not a finite number"),
        ("a: -.Inf", "f.yaml:1:4: not a finite number"),
        ("a: .NaN", "f.yaml:1:4: not a finite number"),
        ("{null: a}", "not JSON|a key must be"),
        ("a: {null: a}", "f.yaml:1:5: a key must be a string, number or boolean"),
        ("a: {? [1] : 3}", "f.yaml:1:7: a key must be a string"),
        ("a: !!int x", "f.yaml:1:4: 'x' is no !!int"),
        ("a: !!int true", "f.yaml:1:4: 'true' is no !!int"),
        ("a: !!binary x", "f.yaml:1:4: !!binary without base64"),
        ("a: 1\nb: \x01", "f.yaml:2:4: a control character"),
        ("a: &a [*a]", "f.yaml:1:4: an anchor that contains itself"),
        ("a: {<<: 3}", "f.yaml:1:9: only a mapping can be merged"),
        ('{"a": nope', "f.yaml:1:7: not JSON: Expecting value"),
        ('{"a": 1}\n{"b" 2}', "f.yaml:2:6: not JSON: Expecting ':' delimiter"),
        ('{"a": 1, "a": 2}', 'f.yaml:1: the key "a" is given twice'),
        ('\n{"a": {"b": 1, "b": 2}}', 'f.yaml:2: the key "b" is given twice'),
        ('{"a": NaN}', "f.yaml: NaN is no JSON number"),
        ('{"a": ' + "9" * 5000 + "}", "f.yaml: a number with too many digits"),
        ("a: " + "[" * 100_000, "nested too deeply"),
        ("- " * 100_000 + "x", "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        (b"a: 1\nb: \xff", "f.yaml:2:4: not text: byte 0xff"),
    ],
)
def test_what_does_not_parse_is_located(text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(text, "f.yaml")


def test_tabs_get_a_hint() -> None:
    with pytest.raises(InputError) as caught:
        load("a:\n\t- b\n", "f.yaml")
    assert caught.value.hint == "indent with spaces: YAML takes no tabs there"


def test_aliases_of_aliases_are_stopped() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for previous, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{previous}'] * 9)}]")
    with pytest.raises(InputError, match="aliases multiply"):
        load("\n".join(lines))


def test_an_alias_is_a_copy() -> None:
    (document,) = load("a: &x {k: 1}\nb: *x\n")
    assert document.value == {"a": {"k": 1}, "b": {"k": 1}}
    assert document.value["a"] is not document.value["b"]


def test_merge_keys() -> None:
    (document,) = load(
        "one: &one {p: 1, q: 1}\ntwo: &two {q: 2, r: 2}\n"
        "both:\n  <<: [*one, *two]\n  p: 0\nsingle:\n  r: 3\n  <<: *two\n"
    )
    assert document.value["both"] == {"p": 0, "q": 1, "r": 2}
    assert document.value["single"] == {"q": 2, "r": 3}


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("", []),
        ("# nothing\n---\n---\n", []),
        ("null", []),
        ("---\na: 1\n---\n# c\n---\nb: 2\n...\n", [({"a": 1}, 2), ({"b": 2}, 6)]),
        ("\ufeffa: 1", [({"a": 1}, 1)]),
        (b"\xef\xbb\xbfa: 1", [({"a": 1}, 1)]),
        ("%YAML 1.1\n---\na: 1", [({"a": 1}, 3)]),
        ('{"a": 1}', [({"a": 1}, 1)]),
        ('{"a": 1.0}{"b": 2}\n\n[3]\nnull\n', [({"a": 1.0}, 1), ({"b": 2}, 1), ([3], 3)]),
        ("{a: yes}", [({"a": True}, 1)]),
        ('{"a": 1}\n---\n{"b": 2}', [({"a": 1}, 1), ({"b": 2}, 3)]),
        ("just text", [("just text", 1)]),
    ],
)
def test_documents_and_where_they_begin(
    text: str | bytes, documents: list[tuple[Any, int]]
) -> None:
    assert load(text, "f") == [Document(value, "f", line) for value, line in documents]


def test_lists_are_flattened_and_items_of_typed_lists_told_what_they_are() -> None:
    documents = load(
        "kind: List\napiVersion: v1\nitems:\n- {kind: A, apiVersion: v1}\n"
        "- {kind: List, items: [{kind: B}, 3]}\n"
        "---\n{kind: PodList, apiVersion: v1, items: [{metadata: {name: p}}, {kind: Odd}]}\n"
        "---\n{kind: PriceList}\n---\n[1]\n",
        "f",
    )
    assert [(it.value, it.where) for it in flattened(documents)] == [
        ({"kind": "A", "apiVersion": "v1"}, "f:1"),
        ({"kind": "B"}, "f:1"),
        (3, "f:1"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}, "f:7"),
        ({"apiVersion": "v1", "kind": "Odd"}, "f:7"),
        ({"kind": "PriceList"}, "f:9"),
        ([1], "f:11"),
    ]


def in_new_process(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    ).stdout.strip()


def test_without_the_c_parser_the_outcome_is_the_same() -> None:
    text = "a: [yes, 010, 'x', !!str 1]\nb: &b {c: 1}\nd: {<<: *b}\n---\ne: 1\n"
    code = (
        "import yaml; vars(yaml).pop('CSafeLoader', None)\n"
        "from kvestigate.kube.yaml_documents import load\n"
        f"print(load({text!r}))\n"
        "try: load('a: 1\\na: 2')\n"
        "except Exception as error: print(error)"
    )
    assert in_new_process(code).splitlines() == [
        repr(load(text)),
        "-:2:1: the key \"a\" is given twice: 'a: 2'",
    ]


def test_importing_the_module_does_not_import_yaml() -> None:
    code = "import sys, kvestigate.kube.yaml_documents; print('yaml' in sys.modules)"
    assert in_new_process(code) == "False"


# JSON escapes what is beyond with surrogate pairs, which YAML does not know.
# YAML takes keys of up to 1024 characters, and an escape is up to six of them.
TEXT = st.text(st.characters(max_codepoint=0xD7FF), max_size=150)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | TEXT
    | st.sampled_from(["yes", "010", "1e3", "~", "2026-01-01", "", "<<"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(JSON.filter(lambda value: value is not None))
def test_what_json_writes_is_read_back(value: Any) -> None:
    (document,) = load(json.dumps({"v": value}))
    assert document.value == {"v": value}
    (document,) = load("# YAML\n" + json.dumps({"v": value}))
    assert document.value == {"v": value}


@given(st.text(alphabet=st.sampled_from("ab:- \n[]{}&*!|>'\"#%@?,~01.\t")))
def test_any_text_gives_documents_or_an_input_error(text: str) -> None:
    try:
        documents = load(text, "f")
    except InputError as error:
        where = error.where or ""
    else:
        where = "f"
        assert all(document.line >= 1 for document in documents)
    assert where.startswith("f")

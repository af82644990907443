"""Nothing that a tenant sends is a 5xx, takes long in the loop, or fills the memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from kvestigate.kube.cel import CompileError, EvalError, OutOfBudget, compiled
from kvestigate.kube.cel.types import DYN
from tests.attacks.planes.conftest import A, Site
from tests.cluster.plane.kinds.custom.conftest import definition, probe

# Each attempt costs the server what it costs the attacker, so two hundred of them take a minute.
pytestmark = pytest.mark.workflow

CRDS = f"{A}/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES = f"{A}/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
MAPS = f"{A}/api/v1/namespaces/default/configmaps"


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Of the processor's time: machines that run tests are busy."""
    begun = time.thread_time()
    yield
    assert time.thread_time() - begun < seconds


LONGEST_TURN = 0.25
"""Seconds of the processor in which the loop serves nobody else. The server takes a fraction of
this: the client and the tests are in the same loop, and are slower while coverage is measured."""


@contextmanager
def no_long_turn() -> Iterator[None]:
    """Nothing keeps the loop busy for long. What threads do beside the loop does not count."""
    loop, longest, turns = asyncio.get_running_loop(), 0.0, True
    begun = time.thread_time()

    def turn() -> None:
        nonlocal begun, longest
        ended = time.thread_time()
        longest, begun = max(longest, ended - begun), ended
        if turns:
            loop.call_soon(turn)

    turn()
    try:
        yield
    finally:
        turns = False
    turn()
    assert longest < LONGEST_TURN


def nested(depth: int, inner: Any) -> Any:
    schema = inner
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def deep_list(depth: int) -> bytes:
    return b'{"metadata":{"name":"m"},"data":' + b"[" * depth + b"]" * depth + b"}"


def deep_object(depth: int) -> bytes:
    return b'{"metadata":{"name":"m"},"data":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"


LARGE_BODIES: list[tuple[str, str, bytes]] = [
    *(("json", f"lists {n}", deep_list(n)) for n in (100, 400, 900, 1_100, 5_000, 100_000)),
    *(("json", f"objects {n}", deep_object(n)) for n in (100, 400, 900, 1_100, 5_000, 100_000)),
    ("json", "unclosed", b"[" * 1_000_000),
    ("json", "empty lists", b"[" + b"[]," * 500_000 + b"[]]"),
    ("json", "long number", b'{"data":' + b"9" * 1_000_000 + b"}"),
    ("json", "long float", b'{"data":1e' + b"9" * 1_000 + b"}"),
    ("json", "long name", b'{"metadata":{"name":"' + b"a" * 1_000_000 + b'"}}'),
    ("json", "many keys", msgspec.json.encode({"data": {f"k{i}": "" for i in range(100_000)}})),
    ("json", "same key", b'{"data":{' + b'"a":"1",' * 50_000 + b'"a":"1"}}'),
    ("json", "same object", b'{"data":{"k":"v"},' + b'"data":{"a":"1"},' * 25_000 + b'"kind":""}'),
    ("json", "surrogates", b'{"data":{"a":"\\ud800\\udc00\\ud800"}}'),
    ("json", "nul", b'{"metadata":{"name":"a\\u0000b"}}'),
    ("json", "not utf-8", b'{"metadata":{"name":"\xff\xfe"}}'),
    ("json", "empty", b""),
    ("json", "null", b"null"),
    *(("yaml", f"flow {n}", b"[" * n + b"]" * n) for n in (100, 900, 1_100, 5_000, 200_000)),
    *(("yaml", f"maps {n}", b"{a: " * n + b"}" * n) for n in (100, 900, 1_100, 5_000, 200_000)),
    ("yaml", "block", b"".join(b" " * i + b"a:\n" for i in range(1_500))),
    ("yaml", "keys", b"{" + b", ".join(b"k%d: %d" % (i, i) for i in range(200_000)) + b"}"),
    ("yaml", "block keys", b"\n".join(b"k%d: %d" % (i, i) for i in range(200_000))),
    ("yaml", "items", b"[" + b"a," * 1_000_000 + b"a]"),
    ("yaml", "dashes", b"- " * 300_000),
    ("yaml", "questions", b"? " * 300_000),
    ("yaml", "aliases", b"a: &a [x]\n" + b"b: [" + b"*a, " * 30_000 + b"*a]\n"),
    (
        "yaml",
        "laughs",
        b"a0: &a0 [x]\n"
        + b"".join(
            b"a%d: &a%d [%b]\n" % (i, i, b", ".join([b"*a%d" % (i - 1)] * 10)) for i in range(1, 12)
        ),
    ),
    ("yaml", "cycle", b"a: &a [*a]\n"),
    ("yaml", "merges", b"a: &a {x: 1}\nb:\n" + b"  <<: *a\n" * 10_000),
    ("yaml", "documents", b"---\na: 1\n" * 20_000),
    ("yaml", "tags", b"a: !!python/object/apply:os.system [id]\n"),
    ("yaml", "comments", b"#" * 2_000_000 + b"\na: 1\n"),
    ("yaml", "spaces", b" " * 2_000_000 + b"a: 1\n"),
    ("yaml", "binary", b"a: !!binary " + b"A" * 1_000_001),
    ("yaml", "number", b"a: " + b"9" * 100_000),
    ("yaml", "octal", b"a: 0o" + b"7" * 100_000),
    ("yaml", "quotes", b'a: "' + b"\\x41" * 200_000 + b'"'),
    ("yaml", "unclosed", b'a: "' + b"a\n" * 200_000),
    ("yaml", "anchors", b"".join(b"a%d: &x%d 1\n" % (i, i) for i in range(10_000))),
    ("apply-patch+yaml", "keys", b"{" + b", ".join(b"k%d: 1" % i for i in range(200_000)) + b"}"),
    ("apply-patch+yaml", "deep", b"[" * 100_000),
    ("apply-patch+yaml", "deep json", deep_object(900)),
    ("merge-patch+json", "deep", deep_object(900)),
    ("merge-patch+json", "deeper", deep_object(100_000)),
    ("strategic-merge-patch+json", "deep", deep_object(900)),
    (
        "json-patch+json",
        "deep",
        b'[{"op":"add","path":"/data","value":' + b"[" * 900 + b"]" * 900 + b"}]",
    ),
    ("json-patch+json", "path", b'[{"op":"add","path":"' + b"/a" * 500_000 + b'","value":1}]'),
    (
        "json-patch+json",
        "copies",
        b"[" + b",".join([b'{"op":"copy","from":"/metadata","path":"/metadata/x"}'] * 30) + b"]",
    ),
    ("vnd.kubernetes.protobuf", "zeros", b"k8s\x00" + b"\x00" * 1_000_000),
    ("vnd.kubernetes.protobuf", "groups", b"k8s\x00" + b"\x0b" * 1_000_000),
    ("vnd.kubernetes.protobuf", "lengths", b"k8s\x00\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
    ("nonsense", "text", b"a: 1"),
]


def test_as_many_bodies_as_promised() -> None:
    print(f"{len(LARGE_BODIES)} bodies, {len(EXPRESSIONS)} expressions, {len(SCHEMAS)} schemas")
    assert len(LARGE_BODIES) + len(EXPRESSIONS) + len(SCHEMAS) >= 100


@pytest.mark.parametrize(
    ("media", "name", "body"), LARGE_BODIES, ids=[f"{each[0]} {each[1]}" for each in LARGE_BODIES]
)
async def test_a_body_is_read_or_refused(site: Site, media: str, name: str, body: bytes) -> None:
    media = f"application/{media}"
    with no_long_turn():
        if "patch" in media:
            assert (await site.ann.post(MAPS, {"metadata": {"name": "m"}})).status == 201
            query = "?fieldManager=x&force=true" if "apply" in media else ""
            reply = await site.ann.call("PATCH", f"{MAPS}/m{query}", body, content_type=media)
            review = reply
        else:
            reply = await site.ann.post(MAPS, body, content_type=media)
            path = f"{A}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
            review = await site.eve.post(path, body, content_type=media)
    assert reply.status < 500, reply.text[:500]
    assert review.status < 500, review.text[:500]


def chain(operator: str, term: str, count: int) -> str:
    return f" {operator} ".join([term] * count)


def loops(depth: int, over: str, inner: str) -> str:
    for number in range(depth):
        inner = f"{over}.all(x{number}, {inner})"
    return inner


TWENTY = "[" + ", ".join(map(str, range(20))) + "]"
EXPRESSIONS = [
    *(chain(operator, "true", 5_000) for operator in ("&&", "||")),
    *(f"{chain(operator, '1', 5_000)} == 1" for operator in "+-*"),
    f"{chain('==', '1', 5_000)}",
    f"{chain('?', 'true : true', 2)}",
    "!" * 5_000 + "true",
    "(" * 5_000 + "true" + ")" * 5_000,
    "[" * 5_000 + "]" * 5_000 + " == []",
    "(" * 60 + chain("+", "1", 99) + ")" * 60 + " == 1",
    "object" + ".a" * 5_000 + " == 1",
    "object" + "[0]" * 5_000 + " == 1",
    "'" + "a" * 200_000 + "' == ''",
    "true" + " " * 200_000,
    "true // " + "x" * 90_000,
    "{" + ", ".join(f"{i}: {i}" for i in range(5_000)) + "}.size() > 0",
    "[" + ", ".join(["undefined"] * 5_000) + "].size() > 0",
    "0x" + "f" * 50_000 + " == 1",
    "9" * 50_000 + " == 1",
    "1e" + "9" * 50_000 + " == 1.0",
    "b'" + "\\377" * 20_000 + "' == b''",
    "a.b{" + ", ".join(f"c{i}: 1" for i in range(2_000)) + "} == 1",
    *(loops(depth, TWENTY, "true") for depth in (3, 5, 8, 20, 60)),
    loops(3, "object.metadata", "x0 == x1"),
    f"{TWENTY}.map(a, {TWENTY}.map(b, {TWENTY}.map(c, {TWENTY}.map(d, {TWENTY})))).size() > 0",
    "'a'" + ".replace('a', 'aaaaaaaaaa')" * 30 + " == ''",
    "'a'" + ".replace('', 'aaaaaaaaaa')" * 30 + " == ''",
    "[1, 2].map(a, [1])" + ".flatten()" * 20 + " == []",
    f"[{', '.join(['[1]'] * 50)}].map(x, x + x).map(x, x + x).map(x, x + x).size() == 0",
    "lists.range(2000000000).size() > 0",
    "lists.range(9000000000000000000).size() > 0",
    "lists.range(900000).map(x, string(x)).join(',').size() > 0",
    "lists.range(5000).distinct().size() > 0",
    "sets.equivalent(lists.range(5000), lists.range(5000))",
    "lists.range(5000).all(x, x in lists.range(5000))",
    "lists.range(100).all(x, object == object)",
    "['a'].join('" + "b" * 1_000 + "').matches('^(a+)+$')",
    "'" + "a" * 40_000 + "!'.matches('^(a+)+$')",
    "'" + "a" * 40_000 + "!'.matches('(.{0,1000}|x)*y')",
    "'" + "a" * 1_000 + "'.matches('(a{1000}){1000}')",
    "'%s'.format([" + TWENTY + "]) == ''",
    "'" + "%s" * 5_000 + "'.format([1]) == ''",
    "quantity('1e999999999').isGreaterThan(quantity('1'))",
    "quantity('" + "9" * 1_000 + "').add(quantity('1')).isGreaterThan(quantity('1'))",
    "duration('" + "9" * 10_000 + "h') > duration('1s')",
    "timestamp('" + "9" * 10_000 + "') == timestamp('2020-01-01T00:00:00Z')",
    "semver('" + "1." * 10_000 + "') == semver('1.0.0')",
    "url('" + "a" * 10_000 + "').getHost() == ''",
    "ip('" + ":" * 10_000 + "') == ip('::1')",
    "base64.decode('" + "A" * 10_001 + "') == b''",
]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda text: text[:24])
def test_an_expression_is_refused_or_ends(expression: str) -> None:
    obj = {"metadata": {f"k{i}": {"a": [i] * 20} for i in range(200)}}
    with within(6.0):
        try:
            compiled(expression, {"object": DYN}).run(obj)
        except (EvalError, OutOfBudget):
            message = ""
        except CompileError as failure:
            message = str(failure)
        else:
            message = ""
    assert len(message) < 200_000


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda text: text[:24])
async def test_a_policy_is_refused_or_judges(site: Site, expression: str) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"]}
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "resources": ["configmaps"]}]},
        "validations": [{"expression": expression}],
    }
    with no_long_turn():
        made = await site.ann.post(POLICIES, {"metadata": {"name": "p"}, "spec": spec})
    assert made.status in (201, 413, 422), made.text[:500]
    if made.status == 201:
        bound = {"policyName": "p", "validationActions": ["Deny"]}
        path = f"{A}/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
        await site.ann.post(path, {"metadata": {"name": "p"}, "spec": bound})
        with no_long_turn():
            reply = await site.ann.post(MAPS, {"metadata": {"name": "m"}})
        assert reply.status in (201, 422), reply.text[:500]


VARIABLES = [{"name": "v0", "expression": "'" + "a" * 1_000 + "'"}] + [
    {"name": f"v{i}", "expression": f"variables.v{i - 1} + variables.v{i - 1}"}
    for i in range(1, 40)
]


async def test_variables_that_double_each_other(site: Site) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"]}
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "resources": ["configmaps"]}]},
        "variables": VARIABLES,
        "validations": [{"expression": "variables.v39.size() > 0"}],
    }
    assert (await site.ann.post(POLICIES, {"metadata": {"name": "p"}, "spec": spec})).status == 201
    bound = {"policyName": "p", "validationActions": ["Deny"]}
    path = f"{A}/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    await site.ann.post(path, {"metadata": {"name": "p"}, "spec": bound})
    reply = await site.ann.post(MAPS, {"metadata": {"name": "m"}})
    assert reply.status == 422, reply.text[:500]
    assert "cost budget" in reply.text


def validated(rule: str) -> Any:
    text = {"type": "string", "maxLength": 1_000}
    rules = [{"rule": rule}]
    return {"type": "object", "properties": {"a": text}, "x-kubernetes-validations": rules}


STRING = {"type": "string"}
SCHEMAS: list[tuple[str, Any]] = [
    *((f"deep {n}", nested(n, STRING)) for n in (20, 60, 100, 200, 400, 1_000)),
    *((f"pattern {n}", {**STRING, "pattern": "^(a+)+$" * n}) for n in (1, 100, 2_000)),
    ("pattern large", {**STRING, "pattern": "(a{1000}){1000}"}),
    ("pattern lookahead", {**STRING, "pattern": "(?=a)b"}),
    ("pattern backreference", {**STRING, "pattern": r"(a)\1"}),
    ("rule of 5,000 terms", validated(chain("+", "1", 5_000) + " == 1")),
    ("rule of 5,000 ands", validated(chain("&&", "true", 5_000))),
    ("rule of loops", validated(loops(8, TWENTY, "true"))),
    ("rule that is long", validated("true" + " " * 150_000)),
    (
        "many rules",
        {
            **nested(1, STRING),
            "x-kubernetes-validations": [{"rule": f"{i} > 0"} for i in range(2_000)],
        },
    ),
    ("many fields", {"type": "object", "properties": {f"f{i}": STRING for i in range(20_000)}}),
    ("many enums", {**STRING, "enum": [f"v{i}" for i in range(50_000)]}),
    ("all of", {**STRING, "allOf": [{"pattern": f"a{i}"} for i in range(2_000)]}),
    ("deep all of", {"type": "object", "allOf": [nested(60, {})]}),
    (
        "default deep",
        {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "default": nested(150, {}),
        },
    ),
]


@pytest.mark.parametrize(("name", "schema"), SCHEMAS, ids=[name for name, _ in SCHEMAS])
async def test_a_schema_is_refused_or_serves(site: Site, name: str, schema: Any) -> None:
    try:
        body = msgspec.json.encode(definition(schema))
    except RecursionError:
        text = b'{"type":"object","properties":{"a":' * 1_000 + b'{"type":"string"}' + b"}}" * 1_000
        body = msgspec.json.encode(definition(STRING)).replace(b'{"type":"string"}', text)
    with no_long_turn():
        made = await site.ann.post(CRDS, body)
    assert made.status < 500, made.text[:500]
    path = f"{A}/apis/example.com/v1/namespaces/default/probes"
    for value in ("a" * 5_000, {"a": "b"}, [1], nested(200, {})):
        with no_long_turn():
            reply = await site.ann.post(path, probe(value))
        assert reply.status < 500, reply.text[:500]
    assert (await site.ann.get(f"{A}/openapi/v3")).status == 200
    assert (await site.ann.get(f"{A}/openapi/v2")).status == 200

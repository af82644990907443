"""Parameters and objects of odd or large values: answered soon, never with a failure of ours."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.attacks.planes.conftest import RBAC, A, Site, binding

N = f"{A}/api/v1/namespaces/default"
NINES = "9" * 5_000
NUMBERS = ["-1", "1e9", "0x10", "9" * 30, NINES, "٣", "1_000", "+1", "nan", "", "1.5"]
PARAMETERS = [
    *(f"{N}/configmaps?{name}=" for name in ("limit", "timeoutSeconds", "resourceVersion")),
    f"{N}/configmaps?resourceVersionMatch=Exact&resourceVersion=",
    f"{N}/pods/p/log?tailLines=",
    f"{N}/pods/p/log?sinceSeconds=",
    f"{A}/diff?from=",
    f"{A}/events?limit=",
    f"{A}/events?after=",
]
SELECTORS = [
    "labelSelector=" + ",".join(f"a{i}=b" for i in range(3_000)),
    "labelSelector=a%20in%20(" + ",".join(f"b{i}" for i in range(5_000)) + ")",
    "labelSelector=" + "!" * 20_000,
    "labelSelector=" + "(" * 20_000,
    "fieldSelector=" + ",".join(["metadata.name=b"] * 2_000),
    "fieldSelector=" + "metadata." * 5_000,
    "continue=" + "A" * 20_000,
    "fieldManager=" + "a" * 20_000,
    "fieldValidation=" + "a" * 20_000,
    "dryRun=" + "a" * 20_000,
    "propagationPolicy=" + "a" * 20_000,
]


def _map(**meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": "m", **meta}}


def _pod(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def _owner(number: int) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "Pod", "name": f"p{number}", "uid": f"u{number}"}


MANY = range(10_000)
NOT_BYTES: tuple[object, ...] = ([], [1, 2], [300], ["x"], 1, {})
OBJECTS: list[tuple[str, str, Any]] = [
    ("owners", "configmaps", _map(ownerReferences=[_owner(i) for i in MANY])),
    ("same owner", "configmaps", _map(ownerReferences=[_owner(1)] * 10_000)),
    ("finalizers", "configmaps", _map(finalizers=[f"a.b/c{i}" for i in MANY])),
    ("annotations", "configmaps", _map(annotations={f"a{i}": "x" for i in MANY})),
    ("labels", "configmaps", _map(labels={f"a{i}": "x" for i in MANY})),
    ("data", "configmaps", {**_map(), "data": {f"a{i}": "x" for i in MANY}}),
    (
        "tolerations",
        "pods",
        _pod(tolerations=[{"key": f"k{i}", "operator": "Exists"} for i in MANY]),
    ),
    ("host aliases", "pods", _pod(hostAliases=[{"ip": "1.2.3.4", "hostnames": ["a"]}] * 10_000)),
    ("volumes", "pods", _pod(volumes=[{"name": f"v{i}", "emptyDir": {}} for i in MANY])),
    ("same volume", "pods", _pod(volumes=[{"name": "v", "emptyDir": {}}] * 10_000)),
    ("gates", "pods", _pod(schedulingGates=[{"name": f"g{i}"} for i in MANY])),
    (
        "containers",
        "pods",
        {
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": f"c{i}", "image": "i"} for i in range(5_000)]},
        },
    ),
    (
        "environment",
        "pods",
        _pod(containers=[{"name": "c", "image": "i", "env": [{"name": f"e{i}"} for i in MANY]}]),
    ),
    (
        "ports",
        "services",
        {**_map(), "spec": {"ports": [{"name": f"p{i}", "port": i + 1} for i in MANY]}},
    ),
    ("same port", "services", {**_map(), "spec": {"ports": [{"name": "p", "port": 1}] * 10_000}}),
    ("quantity", "resourcequotas", {**_map(), "spec": {"hard": {"cpu": "1e999999999"}}}),
    ("long quantity", "resourcequotas", {**_map(), "spec": {"hard": {"cpu": NINES * 20}}}),
    ("scopes", "resourcequotas", {**_map(), "spec": {"scopes": ["Terminating"] * 10_000}}),
    ("limits", "limitranges", {**_map(), "spec": {"limits": [{"type": "Pod"}] * 10_000}}),
    (
        "subsets",
        "endpoints",
        {
            **_map(),
            "subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 1}]}] * 3_000,
        },
    ),
    ("events", "events", {**_map(), "message": "a" * 1_000_000, "involvedObject": {}}),
    *(
        (f"{plural} with {value} as bytes", plural, {**_map(), field: {"a": value}})
        for plural, field in (("secrets", "data"), ("configmaps", "binaryData"))
        for value in NOT_BYTES
    ),
]
BINDINGS = [
    {**binding("x", "y"), "subjects": binding("x")["subjects"] * 10_000},
    {**binding("x", "z"), "roleRef": {**binding("x")["roleRef"], "name": "a" * 10_000}},
]
PATCHES: list[tuple[str, Any]] = [
    ("json-patch+json", [{"op": "add", "path": "/data/a", "value": "x"}] * 5_000),
    (
        "json-patch+json",
        [{"op": "copy", "from": "/data", "path": f"/data/a{i}"} for i in range(40)],
    ),
    ("json-patch+json", [{"op": "add", "path": f"/metadata/{NINES}", "value": "x"}]),
    ("json-patch+json", [{"op": "add", "path": f"/metadata/finalizers/{NINES}", "value": "x"}]),
    ("merge-patch+json", {"data": {f"k{i}": "v" for i in MANY}}),
    ("merge-patch+json", _map(ownerReferences=[_owner(i) for i in MANY])),
    ("strategic-merge-patch+json", _map(ownerReferences=[_owner(i) for i in MANY])),
    (
        "strategic-merge-patch+json",
        _map(**{"$setElementOrder/ownerReferences": [_owner(1)] * 10_000}),
    ),
    ("strategic-merge-patch+json", _map(**{"$deleteFromPrimitiveList/finalizers": ["a"] * 10_000})),
    (
        "apply-patch+yaml",
        {"apiVersion": "v1", "kind": "ConfigMap", **_map(finalizers=[f"a.b/c{i}" for i in MANY])},
    ),
    (
        "apply-patch+yaml",
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            **_map(ownerReferences=[_owner(i) for i in range(5_000)]),
        },
    ),
]
SECONDS = 2.0
"""Of the processor's time on a busy machine; what is quadratic takes ten times as long."""


def test_as_many_cases_as_promised() -> None:
    count = len(NUMBERS) * len(PARAMETERS) + len(SELECTORS)
    count += len(OBJECTS) + len(BINDINGS) + len(PATCHES)
    print(f"{count} parameters and objects")
    assert count >= 130


@pytest.mark.parametrize("path", PARAMETERS)
async def test_numbers(site: Site, path: str) -> None:
    await site.ann.post(f"{N}/pods", _pod(nodeName="gone"))
    for number in NUMBERS:
        reply = await site.ann.get(path + number.replace("٣", "%D9%A3").replace("+", "%2B"))
        too_large = reply.status == 504 and "Too large resource version" in reply.text
        assert reply.status < 500 or too_large, (number[:40], reply.text[:300])


@pytest.mark.parametrize("query", SELECTORS, ids=lambda text: text[:20])
async def test_selectors_and_options(site: Site, query: str) -> None:
    begun = time.thread_time()
    for method in ("GET", "DELETE"):
        reply = await site.ann.call(method, f"{N}/configmaps?{query}")
        assert reply.status < 500, reply.text[:300]
    reply = await site.ann.post(f"{N}/configmaps?{query}", _map())
    assert reply.status < 500, reply.text[:300]
    assert time.thread_time() - begun < SECONDS


@pytest.mark.parametrize(("name", "plural", "obj"), OBJECTS, ids=[each[0] for each in OBJECTS])
async def test_objects(site: Site, name: str, plural: str, obj: Any) -> None:
    begun = time.thread_time()
    made = await site.ann.post(f"{N}/{plural}", obj)
    assert made.status < 500, made.text[:300]
    named = f"{N}/{plural}/{obj['metadata']['name']}"
    if made.status == 201:
        change = {"metadata": {"labels": {"a": "b"}}}
        for reply in (
            await site.ann.patch(named, change),
            await site.ann.get(named, accept="application/json;as=Table;v=v1;g=meta.k8s.io"),
            await site.ann.get(f"{A}/diff?from={made.body['metadata']['resourceVersion']}"),
            await site.ann.delete(named),
        ):
            assert reply.status < 500, reply.text[:300]
    assert time.thread_time() - begun < SECONDS


@pytest.mark.parametrize("obj", BINDINGS, ids=["subjects", "name"])
async def test_bindings(site: Site, obj: Any) -> None:
    begun = time.thread_time()
    reply = await site.ann.post(f"{A}{RBAC}/clusterrolebindings", obj)
    assert reply.status < 500, reply.text[:300]
    assert (await site.ann.get(f"{N}/pods")).status == 200
    assert time.thread_time() - begun < SECONDS


@pytest.mark.parametrize(("media", "patch"), PATCHES, ids=[f"{i}" for i in range(len(PATCHES))])
async def test_patches(site: Site, media: str, patch: Any) -> None:
    first = {**_map(finalizers=["a.b/c"]), "data": {"b": "c"}}
    assert (await site.ann.post(f"{N}/configmaps", first)).status == 201
    begun = time.thread_time()
    for _ in range(2):
        path = f"{N}/configmaps/m?fieldManager=x" + ("&force=true" if "apply" in media else "")
        reply = await site.ann.call("PATCH", path, patch, content_type=f"application/{media}")
        assert reply.status < 500, reply.text[:300]
    assert time.thread_time() - begun < SECONDS

"""Custom resources from their definition to its end."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.cluster.plane.kinds import types
from kvestigate.http.message import Response
from tests.cluster.plane.conftest import Api
from tests.cluster.plane.kinds.custom.conftest import DEFINITIONS, PROBES, definition, probe

OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
PROBE_DEFINITION = f"{DEFINITIONS}/probes.example.com"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def _define(api: Api, spec: dict[str, Any] | None = None, **version: Any) -> None:
    answer = await api.post(DEFINITIONS, definition(spec or OPEN, **version))
    assert answer.status == 201, answer.body


async def test_a_definition_is_served_as_soon_as_it_is_written(api: Api) -> None:
    await _define(api)
    found = (await api.get("/apis/example.com/v1")).body["resources"]
    assert [(it["name"], it["shortNames"]) for it in found] == [("probes", ["pb"])]
    assert (await api.post(PROBES, probe({"a": 1}))).body["spec"] == {"a": 1}


async def test_rules_are_taken_without_a_word(api: Api) -> None:
    rule = {"type": "object", "x-kubernetes-validations": [{"rule": "true"}]}
    answer = await api.post(DEFINITIONS, definition(rule))
    assert answer.status == 201
    assert not answer.headers.get("warning")


async def test_names_that_others_have_are_not_accepted(api: Api) -> None:
    await _define(api)
    other = definition(OPEN)
    other["metadata"]["name"] = "probs.example.com"
    other["spec"]["names"] = {"plural": "probs", "kind": "Prob", "shortNames": ["pb"]}
    status = (await api.post(DEFINITIONS, other)).body["status"]
    assert [(it["type"], it["status"], it["reason"]) for it in status["conditions"]] == [
        ("NamesAccepted", "False", "ShortNamesConflict"),
        ("Established", "False", "NotAccepted"),
    ]
    assert (await api.get(PROBES.replace("probes", "probs"))).status == 404


@pytest.mark.parametrize(
    ("annotation", "status", "message"),
    [
        ("https://example.com/1", "True", "approved in https://example.com/1"),
        ("unapproved, a test", "False", 'not approved: "unapproved, a test"'),
    ],
)
async def test_protected_groups_say_whether_they_are_approved(
    api: Api, annotation: str, status: str, message: str
) -> None:
    protected = definition(OPEN)
    protected["metadata"] = {
        "name": "probes.example.k8s.io",
        "annotations": {"api-approved.kubernetes.io": annotation},
    }
    protected["spec"]["group"] = "example.k8s.io"
    found = (await api.post(DEFINITIONS, protected)).body["status"]["conditions"][-1]
    assert (found["status"], found["message"]) == (status, message)


async def test_defaults_reach_objects_that_are_older(api: Api) -> None:
    await _define(api, {"type": "object", "properties": {"a": {"type": "string"}}})
    await api.post(PROBES, probe({"a": "x"}))
    current = (await api.get(PROBE_DEFINITION)).body
    schema = current["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["b"] = {"type": "integer", "default": 7}
    assert (await api.put(PROBE_DEFINITION, current)).status == 200
    assert (await api.get(f"{PROBES}/a")).body["spec"] == {"a": "x", "b": 7}
    patched = (await api.patch(f"{PROBES}/a", {"metadata": {"labels": {"x": "y"}}})).body
    assert patched["spec"] == {"a": "x", "b": 7}
    assert patched["metadata"]["generation"] == 1


async def test_nobody_must_repair_what_was_wrong_before(api: Api) -> None:
    await _define(api, {"type": "object", "properties": {"a": {"type": "string"}}})
    await api.post(PROBES, probe({"a": "long"}))
    current = (await api.get(PROBE_DEFINITION)).body
    schema = current["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["a"]["maxLength"] = 2
    assert (await api.put(PROBE_DEFINITION, current)).status == 200
    assert (await api.patch(f"{PROBES}/a", {"metadata": {"labels": {"x": "y"}}})).status == 200
    assert (await api.patch(f"{PROBES}/a", {"spec": {"a": "longer"}})).status == 422


async def test_each_version_judges_what_is_written_through_it(api: Api) -> None:
    two = definition({"type": "object", "properties": {"a": {"type": "string"}}})
    strict = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 1}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": strict}}}
    two["spec"]["versions"].append(
        {"name": "v2", "served": True, "storage": False, "schema": schema}
    )
    assert (await api.post(DEFINITIONS, two)).status == 201
    newer = PROBES.replace("/v1/", "/v2/")
    assert (await api.get("/apis/example.com")).body["preferredVersion"]["version"] == "v2"
    assert (await api.post(PROBES, probe({"a": "long"}))).status == 201
    assert (await api.get(f"{newer}/a")).body["apiVersion"] == "example.com/v2"
    again = {**probe({"a": "long"}, name="b"), "apiVersion": "example.com/v2"}
    assert (await api.post(newer, again)).status == 422
    short = {**probe({"a": "s"}, name="b"), "apiVersion": "example.com/v2"}
    assert (await api.post(newer, short)).body["apiVersion"] == "example.com/v2"
    assert (await api.get(f"{PROBES}/b")).body["apiVersion"] == "example.com/v1"


async def test_the_table_has_the_columns_of_the_definition(api: Api) -> None:
    ready = '.status.conditions[?(@.type=="Ready")].status'
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Ready", "type": "string", "jsonPath": ready, "priority": 1},
    ]
    await _define(api, additionalPrinterColumns=columns, schema={"openAPIV3Schema": OPEN})
    conditions = [{"type": "Old", "status": "False"}, {"type": "Ready", "status": "True"}]
    await api.post(PROBES, probe({"size": 3}, status={"conditions": conditions}))
    await api.post(PROBES, probe({"size": "text"}, name="b"))
    table = (await api.get(PROBES, accept=TABLE)).body
    assert [it["name"] for it in table["columnDefinitions"]] == ["Name", "Size", "Ready"]
    assert [row["cells"] for row in table["rows"]] == [["a", 3, "True"], ["b", None, None]]


async def test_the_end_of_a_definition_is_the_end_of_its_objects_and_watches(api: Api) -> None:
    await _define(api)
    await api.post(PROBES, probe())
    request = api.request("GET", f"{PROBES}?watch=1")
    watch = await api.server.handle(request)
    assert isinstance(watch, Response)
    events = aiter(watch.body)  # type: ignore[arg-type]  # a watch is a stream
    assert b'"ADDED"' in await anext(events)
    assert (await api.delete(PROBE_DEFINITION)).status == 200
    rest = [event async for event in events]
    assert len(rest) == 1
    assert b'"DELETED"' in rest[0]
    assert (await api.get(PROBES)).status == 404
    await _define(api)
    assert (await api.get(PROBES)).body["items"] == []


async def test_a_definition_waits_for_objects_that_are_held(api: Api) -> None:
    await _define(api)
    held = probe()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(PROBES, held)
    await api.post(PROBES, probe(name="free"))
    await api.delete(PROBE_DEFINITION)
    ending = (await api.get(PROBE_DEFINITION)).body
    assert ending["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    (left,) = (await api.get(PROBES)).body["items"]
    assert left["metadata"]["deletionTimestamp"]
    assert (await api.post(PROBES, probe(name="late"))).status == 405
    await api.patch(f"{PROBES}/a", {"metadata": {"finalizers": None}})
    assert (await api.get(PROBE_DEFINITION)).status == 404
    assert (await api.get(PROBES)).status == 404


async def test_applying_merges_lists_by_their_keys(api: Api) -> None:
    parts = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "count": {"type": "integer", "default": 1}},
        },
    }
    await _define(api, {"type": "object", "properties": {"parts": parts}})
    for owner, part in (("one", {"name": "a", "count": 2}), ("two", {"name": "b"})):
        config = probe({"parts": [part]})
        path = f"{PROBES}/a?fieldManager={owner}"
        answer = await api.patch(path, config, "application/apply-patch+yaml")
        assert answer.status in (200, 201), answer.body
    assert answer.body["spec"]["parts"] == [{"name": "a", "count": 2}, {"name": "b", "count": 1}]


async def test_planes_that_define_the_same_share_what_was_compiled(api: Api) -> None:
    found = []
    for name in ("one", "two"):
        other = Api(api.server, f"/clusters/{name}/control-plane")
        await _define(other)
        found.append(types.of((await api.server.planes.open(name)).state))
    assert found[0] is found[1]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"scope": "Cluster"}, 'spec.scope: Invalid value: "Cluster": field is immutable'),
        (
            {"names": {"kind": "Other"}},
            'spec.names.kind: Invalid value: "Other": field is immutable',
        ),
        ({"group": "x.y"}, 'spec.group: Invalid value: "x.y": field is immutable'),
    ],
)
async def test_some_of_a_definition_is_there_to_stay(
    api: Api, change: dict[str, Any], told: str
) -> None:
    await _define(api)
    answer = await api.patch(PROBE_DEFINITION, {"spec": change})
    assert answer.status == 422
    assert answer.body["message"].endswith(f"is invalid: {told}")

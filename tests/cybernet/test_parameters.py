"""Parameters become options that are valid, or are refused with the field that is wrong."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvestigate import catalog
from kvestigate.cybernet.narrowing import rules_of
from kvestigate.cybernet.parameters import Defaults, options_of, result_schema, schema
from kvestigate.cybernet.policy import agent_defaults
from kvestigate.cybernet.refusals import ConstraintViolated
from kvestigate.cybernet.registry import exposable
from kvestigate.cybernet.spec import read_cyberspace
from kvestigate.operation import Operation
from kvestigate.workspace.names import DEFAULT_ROOT
from kvestigate.workspace.spec import GpuSpec, StorageMode
from kvestigate.workspace.uploads import Upload
from tests.cybernet.conftest import RESEARCH, changed

OPERATIONS = catalog.operations()

KNOWN = exposable(OPERATIONS)
WORKSPACE = {"name": "a", "node": "n"}


def test_fields_of_the_operator_have_their_default() -> None:
    made = options_of(KNOWN["workspace.create"], {"workspace": WORKSPACE}, {})
    assert made.workspace.root == DEFAULT_ROOT


@pytest.mark.parametrize("name", ["apply", "owner", "via", "follow", "root", "local", "directory"])
@pytest.mark.parametrize("operation", KNOWN.values(), ids=lambda it: it.name)
def test_agents_cannot_set_what_the_operator_decides(
    operation: Operation[Any, Any], name: str
) -> None:
    with pytest.raises(
        ConstraintViolated, match=f"{name}: (cannot be set by agents|no such field)"
    ):
        options_of(operation, {name: "x"}, {})
    assert name not in schema(operation, {})["properties"]


@pytest.mark.parametrize(
    ("operation", "field"),
    [
        ("workspace.create", {"root": "/etc"}),
        ("workspace.create", {"sources": [{"local": "/etc"}]}),
        ("workspace.sync", {"root": "/etc"}),
    ],
)
def test_nor_can_they_set_it_inside_of_a_workspace(operation: str, field: dict[str, Any]) -> None:
    parameters = {"workspace": {**WORKSPACE, **field}}
    with pytest.raises(ConstraintViolated, match=r"workspace\.\w+: cannot be set by agents"):
        options_of(KNOWN[operation], parameters, {})


def test_values_become_what_they_mean() -> None:
    archive = Upload(b"\x00tar")
    storage = {"mode": "all-tmpfs"}
    made = options_of(
        KNOWN["workspace.sync"],
        {"workspace": {**WORKSPACE, "storage": storage}, "archive": archive, "excludes": ["*.pyc"]},
        {},
    )
    with closing(archive):
        assert made.archive.opened().read() == b"\x00tar"
    assert made.excludes == ("*.pyc",)
    assert made.workspace.storage.mode is StorageMode.ALL_TMPFS


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({}, "workspace"),
        ({"workspace": "x"}, "workspace: Expected `object`"),
        ({"workspace": {**WORKSPACE, "nmae": 1}}, "workspace.nmae: no such field"),
        ({"workspace": {**WORKSPACE, "gpu": {"x": 1}}}, "workspace.gpu.x: no such field"),
        ({"workspace": {**WORKSPACE, "sources": []}}, "workspace.sources: cannot be set by agents"),
        ({"workspace": {**WORKSPACE, "storage": {"mode": "ram"}}}, "workspace.storage.mode"),
        ({"workspace": {**WORKSPACE, "name": "A/.."}}, "workspace.name: 'A/..'"),
        ({"workspace": WORKSPACE, "command": "ls", "tag": "t"}, "command: Expected `array`"),
        ({"workspace": WORKSPACE, "command": [1], "tag": "t"}, r"command\[0\]: Expected `str`"),
        ({"workspace": WORKSPACE, "command": ["ls"], "tag": "../t"}, "tag: '../t'"),
        ({"workspace": WORKSPACE, "command": ["a\0"], "tag": "t"}, "zero byte"),
        ({"workspace": WORKSPACE, "command": ["a"], "tag": "t", "env": {"A=B": "x"}}, "env"),
    ],
)
def test_what_is_wrong_is_named(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(ConstraintViolated, match=said):
        options_of(KNOWN["workspace.run"], parameters, {})


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)


@settings(max_examples=60)
@given(st.sampled_from(sorted(KNOWN)), st.data())
def test_any_parameters_are_taken_or_refused(name: str, data: st.DataObject) -> None:
    operation = KNOWN[name]
    fields = sorted(schema(operation, {})["properties"])
    keys = st.sampled_from(fields) if fields else st.text(max_size=5)
    given_ = data.draw(st.dictionaries(keys, anything | st.just(WORKSPACE)))
    try:
        made = options_of(operation, given_, {})
    except ConstraintViolated as refusal:
        assert refusal.message  # noqa: PT017 - either is right
    else:
        assert isinstance(made, operation.input)


@pytest.mark.parametrize("operation", KNOWN.values(), ids=lambda it: it.name)
def test_every_operation_has_a_schema_of_an_object(operation: Operation[Any, Any]) -> None:
    found = schema(operation, {})
    assert found["type"] == "object"
    assert found["additionalProperties"] is False
    assert set(found["required"]) <= set(found["properties"])


def test_fields_that_are_always_refused_are_not_offered() -> None:
    found = schema(KNOWN["workspace.create"], {})["$defs"]
    assert set(found["WorkspaceSpec"]["properties"]) == {
        "name",
        "node",
        "api_version",
        "storage",
        "gpu",
    }
    assert "SourceSpec" not in found


@pytest.mark.parametrize(
    ("gpu", "closed"),
    [({}, False), ({"reserve": 2}, False), ({"cordon_node": True}, True)],
)
def test_where_nodes_may_not_be_closed_they_stay_open(gpu: dict[str, Any], closed: bool) -> None:
    create = KNOWN["workspace.create"]
    given = {"workspace": {**WORKSPACE, "gpu": gpu}}
    open_nodes: Defaults = {GpuSpec: {"cordon_node": False}}
    assert options_of(create, given, open_nodes).workspace.gpu.cordon_node is closed
    assert options_of(create, given, {}).workspace.gpu.cordon_node
    assert not options_of(create, {"workspace": WORKSPACE}, open_nodes).workspace.gpu.cordon_node
    told = schema(create, open_nodes)["$defs"]["GpuSpec"]["properties"]["cordon_node"]
    assert told["default"] is False


@pytest.mark.parametrize("operation", exposable(OPERATIONS).values(), ids=lambda it: it.name)
def test_what_is_answered_has_a_schema(operation: Operation[Any, Any]) -> None:
    found = result_schema(operation)
    assert found["type"] == "object"
    assert found["properties"]
    jsonschema_rs.meta.validate(found)


def test_every_field_that_agents_can_set_is_described() -> None:
    for operation in exposable(OPERATIONS).values():
        found = schema(operation, {})
        for described in (found, *found.get("$defs", {}).values()):
            for name, field in described.get("properties", {}).items():
                said = (field, *field.get("anyOf", ()))
                assert any(each.get("description") for each in said), (operation.name, name)


def test_schemas_say_what_is_allowed_here() -> None:
    rules = rules_of(read_cyberspace(RESEARCH))
    definitions = schema(KNOWN["workspace.create"], {}, rules)["$defs"]
    workspace = definitions["WorkspaceSpec"]["properties"]
    assert workspace["node"]["enum"] == ["node-1", "node-2"]
    assert workspace["name"]["pattern"] == "^agent-[a-z0-9][a-z0-9-]{0,30}$"
    storage = definitions["StorageSpec"]["properties"]
    assert storage["mode"]["enum"] == ["all-tmpfs", "hybrid"]
    assert "At most 500.0 GiB." in storage["tmpfs_size"]["description"]
    assert definitions["GpuSpec"]["properties"]["reserve"]["maximum"] == 4
    assert definitions["GpuSpec"]["properties"]["cordon_node"]["const"] is False
    many = changed("constraints.hosts.allow_names", [f"node-{n}" for n in range(1000)])
    narrowed = schema(KNOWN["workspace.create"], {}, rules_of(read_cyberspace(many)))
    node = narrowed["$defs"]["WorkspaceSpec"]["properties"]["node"]
    assert "enum" not in node
    assert "1000 nodes are allowed" in node["description"]


@pytest.mark.parametrize(
    ("modes", "most", "mode", "size"),
    [
        (["disk", "all-tmpfs"], "16Gi", "disk", "16G"),
        (["hybrid"], "1Ti", "hybrid", "500G"),
        (["all-tmpfs"], "100Mi", "all-tmpfs", "100M"),
    ],
)
def test_what_an_agent_leaves_out_is_allowed(
    modes: list[str], most: str, mode: str, size: str
) -> None:
    document = changed("constraints.workspace.storage.allowed_modes", modes)
    document = changed("constraints.workspace.storage.max_tmpfs_size", most, document)
    defaults = agent_defaults(read_cyberspace(document).workspace)
    made = options_of(
        KNOWN["workspace.create"], {"workspace": {"name": "a", "node": "n"}}, defaults
    )
    assert (made.workspace.storage.mode, made.workspace.storage.tmpfs_size) == (mode, size)

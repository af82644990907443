"""What the pages show of a cluster: everything that is there, nothing that is secret or runs."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest

from kvestigate import catalog
from kvestigate.console import forms
from kvestigate.console.object_pages import LINKED
from kvestigate.operation import Effect
from kvestigate.optimize.waste import WasteOptions
from tests.bed import Bed
from tests.console.conftest import Consoles, Visitor
from tests.console.test_markup import HOSTILE

SECRET = "hunter2-the-password"


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["run", f"--password={SECRET}"],
        "env": [{"name": "DB_PASSWORD", "value": SECRET}, {"name": "PLAIN", "value": "seen"}],
    }
    return {"metadata": {"name": name, **metadata}, "spec": {"containers": [container]}}


async def test_a_table_has_the_rows_and_columns_of_kubectl(bed: Bed, visitor: Visitor) -> None:
    await bed.create("pods", pod("table-1", labels={"app": "web"}))
    page = await visitor.get("/explore/pods")
    for words in ("Namespace", "Name", "Ready", "Status", "Restarts", "Age", "table-1", "Pending"):
        assert words in page


async def test_a_filter_looks_at_names_cells_and_labels(bed: Bed, visitor: Visitor) -> None:
    for number in range(3):
        labels = {"tier": "front" if number else "back"}
        await bed.create("configmaps", {"metadata": {"name": f"filter-{number}", "labels": labels}})

    async def names(**parameters: str) -> list[str]:
        page = await visitor.get("/explore/configmaps", **parameters)
        return sorted(set(re.findall(r"/object/configmaps/default/(filter-\d)", page)))

    assert await names() == ["filter-0", "filter-1", "filter-2"]
    assert await names(q="FILTER-1") == ["filter-1"]
    assert await names(q="tier=front") == ["filter-1", "filter-2"]
    assert await names(q="filter -tier=front") == ["filter-0"]
    assert await names(ns="kube-system") == []
    assert "matches the filter" in await visitor.get("/explore/configmaps", q="no-such-thing")


async def test_pages_of_a_table_are_links(bed: Bed, visitor: Visitor) -> None:
    for number in range(60):
        await bed.create("serviceaccounts", {"metadata": {"name": f"page-{number:02}"}})
    first = await visitor.get("/explore/serviceaccounts", q="page-")
    assert "1 to 50 of 60 matching" in first
    second = await visitor.get("/explore/serviceaccounts", q="page-", page="2")
    assert "page-59" in second
    assert "page-00" not in second
    for odd in ("0", "-1", "999", "x", "9" * 40):
        assert "page-" in await visitor.get("/explore/serviceaccounts", q="page-", page=odd)


@pytest.mark.parametrize("text", HOSTILE)
async def test_nothing_that_a_tenant_writes_becomes_markup(
    bed: Bed, visitor: Visitor, text: str
) -> None:
    name = f"hostile-{abs(hash(text))}"
    await bed.create("pods", pod(name, annotations={"note": text}))
    event = {
        "metadata": {"name": name}, "involvedObject": {"kind": "Pod", "name": name,
        "namespace": "default"}, "reason": text, "message": text, "type": "Warning",
    }  # fmt: skip
    await bed.create("events", event)
    shown = [
        await visitor.get(f"/object/pods/default/{name}"),
        await visitor.get(f"/object/pods/default/{name}/yaml"),
        await visitor.get("/explore/events", q=text),
        await visitor.get("/explore/pods", q=text),
        await visitor.get("/plan", cpu=text),
        await visitor.get("/run/describe", kind=text, name=text, run="1"),
    ]
    for page in shown:
        body = page.partition("<body>")[2]
        assert "<script" not in body
        assert not re.search(r"<(img|svg)[^>]*\son", body)
        assert "\x1b" not in page


async def test_secrets_stay_in_the_cluster(bed: Bed, visitor: Visitor) -> None:
    encoded = base64.b64encode(SECRET.encode()).decode()
    applied = {"kubectl.kubernetes.io/last-applied-configuration": f'{{"data":"{encoded}"}}'}
    await bed.create(
        "secrets",
        {"metadata": {"name": "db", "annotations": applied}, "data": {"password": encoded}},
    )
    await bed.create("pods", pod("with-secrets"))
    for path in ("secrets/default/db", "pods/default/with-secrets"):
        for part in ("", "/yaml", "/why"):
            page = await visitor.get(f"/object/{path}{part}")
            assert SECRET not in page
            assert encoded not in page
    assert "(20 bytes)" in await visitor.get("/object/secrets/default/db/yaml")
    assert "seen" in await visitor.get("/object/pods/default/with-secrets/yaml")


async def test_what_is_missing_is_said_with_a_way_out(visitor: Visitor) -> None:
    for path, words in (
        ("/object/pods/default/nope", "not found"),
        ("/explore/widgets", "there is no resource type"),
        ("/run/no.such", "there is no such operation"),
        ("/explore/pods?context=other", "not in the kubeconfig"),
        ("/somewhere", "there is no page"),
    ):
        answer = await visitor.http.get(path)
        assert answer.status_code >= 400
        assert words in answer.text
        assert 'role="alert"' in answer.text


async def test_a_console_only_reads_unless_it_is_told_otherwise(visitor: Visitor) -> None:
    page = await visitor.get("/operations")
    assert "/act/" not in page
    for name in catalog.CATALOG:
        if catalog.operation(name).effect is not Effect.READ:
            assert (await visitor.http.get(f"/act/{name}")).status_code == 400
            assert (await visitor.http.get(f"/run/{name}")).status_code == 404


async def test_a_write_needs_its_plan_and_the_words_of_the_command_line(
    bed: Bed, consoles: Consoles
) -> None:
    await bed.create("nodes", {"metadata": {"name": "node-w"}})
    visitor = await consoles.make(allow_writes=True).signed_in()

    async def cordoned() -> bool:
        return bool((await bed.get("nodes", "node-w"))["spec"].get("unschedulable"))

    planned = (await visitor.post("/act/node.cordon", node="node-w")).text
    assert "i-understand-this-modifies-cluster" in planned
    digest = re.findall(r'name="plan" value="([0-9a-f]+)"', planned)[0]
    for typed, plan in (
        ("", digest), ("yes", digest), ("i-understand-this-disrupts-workloads", digest),
        ("i-understand-this-modifies-cluster", "0" * 64),
    ):  # fmt: skip
        fields = {"node": "node-w", "confirmation": typed, "plan": plan}
        answer = await visitor.post("/act/node.cordon", **fields)
        assert "othing was changed" in answer.text
        assert not await cordoned()
    fields = {"node": "node-w", "confirmation": "i-understand-this-modifies-cluster"}
    done = await visitor.post("/act/node.cordon", **fields, plan=digest)
    assert "Done" in done.text
    assert await cordoned()


def test_links_on_objects_name_fields_that_operations_have() -> None:
    for name, filled in LINKED:
        operation = catalog.operation(name)
        assert operation.effect is not Effect.READ
        assert filled.keys() <= {field.name for field, _ in forms.all_fields(operation)}


def test_no_form_reaches_files_of_this_machine() -> None:
    offered = {
        name for name in catalog.CATALOG
        if forms.offered(catalog.operation(name), allow_writes=True)
    }  # fmt: skip
    assert {"audit", "describe", "plan", "node.drain", "jobs.list", "plane.list"} <= offered
    for name in ("exec", "fanout.exec", "fanout.push", "kubeconfig.convert", "kubeconfig.analyze",
                 "debug.api", "app.up", "workspace.sync", "deploy", "audit.diff"):  # fmt: skip
        assert name not in offered, name


@pytest.mark.parametrize("file", ["/dev/zero", "gpus.jsonl"])
async def test_no_link_has_the_console_read_files(visitor: Visitor, file: str) -> None:
    """A link of another site is followed, and what reads runs at once."""
    page = await visitor.get("/run/optimize.waste", run="1", history=file)
    assert "history: there is no such field" in page
    options = WasteOptions(history=file)
    assert catalog.operation("optimize.waste").touches(options).files == (file,)


def test_no_field_of_a_form_is_a_file_on_the_command_line() -> None:
    fields = [
        (name, field.name, param.metavar)
        for name in catalog.CATALOG
        if forms.offered(catalog.operation(name), allow_writes=True)
        for field, param in forms.all_fields(catalog.operation(name))
    ]
    assert ("workspace.status", "root", "DIR") in fields  # of the hosts, not of this machine
    assert [field for field in fields if field[2] in ("FILE", "PATH")] == []

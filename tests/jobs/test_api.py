"""The REST API as any HTTP client sees it."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.errors import NoCluster, UsageError
from kvestigate.http.message import Headers, Request
from kvestigate.http.pool import HttpClient
from kvestigate.jobs.launching import launcher_of
from kvestigate.jobs.server.serve import bound
from tests.jobs.tasks_of import finish


async def ask(
    url: str,
    method: str,
    target: str,
    body: Any = None,
    headers: list[tuple[str, str]] | None = None,
) -> tuple[int, Any]:
    parts = urlsplit(url)
    client = HttpClient(host=parts.hostname or "", port=parts.port or 0)
    path, _, query = target.partition("?")
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    fields = [("content-type", "application/json"), *(headers or [])]
    try:
        request = Request(method, path, query, Headers(fields), data)
        incoming = await client.send(request, timeout=10)
        return incoming.status, json.loads(await incoming.read())
    finally:
        await client.aclose()


JANE = [("x-user", "jane")]
DESCRIPTION = (Path(__file__).parents[2] / "docs" / "jobs.openapi.json").read_bytes()


async def test_health_needs_no_user(url: str) -> None:
    answer = await ask(url, "GET", "/")
    assert answer == (200, {"status": "ok", "service": "k8s-cli-api"})


async def test_answers_have_the_documented_shape(url: str) -> None:
    code, submitted = await ask(url, "POST", "/tasks/submit", {"run": "x", "name": "t"}, JANE)
    assert code == 200
    assert submitted.keys() == {"task_id", "status", "message"}
    code, listed = await ask(url, "GET", "/tasks", None, JANE)
    (task,) = listed["tasks"]
    assert code == 200
    assert list(task) == [
        "task_id",
        "name",
        "status",
        "created_at",
        "updated_at",
        "username",
        "metadata",
    ]
    assert list(task["metadata"]) == [
        "job_name",
        "namespace",
        "num_nodes",
        "node_jobs",
        "succeeded_nodes",
        "failed_nodes",
        "running_nodes",
        "pending_nodes",
    ]
    answer = await ask(url, "POST", "/tasks/stop?all_users=true", None, JANE)
    assert answer == (200, {"count": 1, "status": "stopped", "message": "Stopped 1 task"})


@pytest.mark.parametrize(
    ("method", "target", "body", "headers", "code", "detail"),
    [
        ("GET", "/tasks", None, [], 401, "X-User"),
        ("GET", "/tasks", None, [("x-user", "")], 401, "X-User"),
        ("GET", "/tasks", None, [("x-user", "%00")], 401, "X-User"),
        ("GET", "/tasks", None, [("x-user", "%ff")], 401, "X-User"),
        ("GET", "/tasks", None, [*JANE, ("x-user", "joe")], 401, "exactly one X-User header"),
        ("GET", "/tasks?all_users=perhaps", None, JANE, 422, "all_users"),
        ("GET", "/tasks/abc12345", None, JANE, 404, "Task abc12345 not found"),
        ("GET", "/tasks/abc12345/logs", None, JANE, 404, "Task abc12345 not found"),
        ("GET", "/tasks/abc12345/logs?tail=-1", None, JANE, 422, "tail"),
        ("POST", "/tasks/abc12345/stop", None, JANE, 404, "Task abc12345 not found"),
        ("GET", "/volumes/vol12345", None, JANE, 404, "Volume vol12345 not found"),
        ("DELETE", "/volumes/vol12345", None, JANE, 404, "Volume vol12345 not found"),
        ("POST", "/tasks/submit", {}, JANE, 422, "run: the field is required"),
        ("POST", "/tasks/submit", [], JANE, 422, "body"),
        ("POST", "/tasks/submit", b"{", JANE, 422, "JSON"),
        ("POST", "/tasks/submit", b'{"run":"' + b"x" * 2**20 + b'"}', JANE, 413, "larger"),
        ("POST", "/tasks/submit", {"run": "x", "rnu": 1}, JANE, 422, "rnu: no such field"),
        ("POST", "/volumes/create", {"name": "a"}, JANE, 422, "size"),
        ("POST", "/volumes/create", {"name": "a", "size": "x"}, JANE, 422, "size"),
        ("PUT", "/tasks", None, JANE, 405, "Method Not Allowed"),
        ("GET", "/nowhere", None, JANE, 404, "Not Found"),
    ],
)
async def test_a_refusal_says_why(
    url: str,
    method: str,
    target: str,
    body: Any,
    headers: list[tuple[str, str]],
    code: int,
    detail: str,
) -> None:
    status, answer = await ask(url, method, target, body, headers)
    assert (status, list(answer)) == (code, ["detail"])
    assert detail in answer["detail"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_the_header_alone_is_for_loopback_alone(host: str) -> None:
    with pytest.raises(UsageError, match="--host"):
        bound(host, 0)


async def test_every_documented_path_is_there(url: str) -> None:
    code, document = await ask(url, "GET", "/openapi.json")
    assert code == 200
    found = {(method.upper(), path) for path, each in document["paths"].items() for method in each}
    assert found == {
        ("GET", "/"),
        ("GET", "/whoami"),
        ("GET", "/history"),
        ("POST", "/tasks/plan"),
        ("GET", "/tasks/{task_id}/watch"),
        ("GET", "/tasks/{task_id}/endpoint"),
        ("POST", "/files/missing"),
        ("PUT", "/files/{digest}"),
        ("POST", "/volumes/{volume_id}/resize"),
        ("GET", "/volumes/{volume_id}/files"),
        ("POST", "/tasks/submit"),
        ("GET", "/tasks"),
        ("GET", "/tasks/{task_id}"),
        ("POST", "/tasks/{task_id}/stop"),
        ("POST", "/tasks/stop"),
        ("GET", "/tasks/{task_id}/logs"),
        ("GET", "/tasks/{task_id}/why"),
        ("POST", "/volumes/create"),
        ("GET", "/volumes"),
        ("DELETE", "/volumes/{volume_id}"),
        ("GET", "/volumes/{volume_id}"),
    }


async def test_the_committed_description_is_the_served_one(url: str) -> None:
    _, served = await ask(url, "GET", "/openapi.json")
    committed = json.loads(DESCRIPTION)
    assert served["paths"] == committed["paths"], "write docs/jobs.openapi.json anew"
    assert served["components"] == committed["components"], "write docs/jobs.openapi.json anew"


async def test_the_description_says_who_asks_and_how_it_refuses(url: str) -> None:
    _, served = await ask(url, "GET", "/openapi.json")
    schemes = served["components"]["securitySchemes"]
    assert (schemes["user"]["name"], schemes["user"]["in"]) == ("X-User", "header")
    assert schemes["token"]["scheme"] == "bearer"
    detail = served["components"]["schemas"]["Refusal"]["properties"]["detail"]
    assert detail["type"] == "string"
    described = [
        operation
        for path, methods in served["paths"].items()
        if path != "/"
        for operation in methods.values()
    ]
    for operation in described:
        assert operation["security"] == [{"user": []}, {"token": []}]
        assert "x-user" in [each["name"].lower() for each in operation["parameters"]]
        for code in [
            "400",
            "401",
            "403",
            "404",
            "409",
            "411",
            "413",
            "421",
            "422",
            "429",
            "500",
            "503",
            "504",
        ]:
            schema = operation["responses"][code]["content"]["application/json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/Refusal"}


async def test_stop_all_leaves_what_has_ended(url: str, api: Api) -> None:
    ids = []
    for _ in range(3):
        _, answer = await ask(url, "POST", "/tasks/submit", {"run": "x"}, JANE)
        ids.append(answer["task_id"])
    await finish(api, f"task-{ids[0]}-{ids[0]}", "Complete")
    _, stopped = await ask(url, "POST", "/tasks/stop", None, JANE)
    assert stopped == {"count": 2, "status": "stopped", "message": "Stopped 2 tasks"}
    _, listed = await ask(url, "GET", "/tasks", None, JANE)
    assert [task["task_id"] for task in listed["tasks"]] == [ids[0]]
    for key in ("created_at", "updated_at"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}", listed["tasks"][0][key])


async def test_a_server_is_named_where_there_is_no_cluster(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve() -> Access:
        raise NoCluster("no cluster is configured", hint="kvestigate up")

    monkeypatch.delenv("K8S_CLI_API_URL", raising=False)
    for default, hint in ((url, f"export K8S_CLI_API_URL={url}"), ("http://127.0.0.1:9", "up")):
        monkeypatch.setattr("kvestigate.jobs.launching.DEFAULT_URL", default)
        with pytest.raises(NoCluster) as caught:
            async with launcher_of(resolve, "jane"):
                pass
        assert (caught.value.hint or "").endswith(hint)


# Values that pass our own rules and meet Kubernetes' ones, or come close.
WORDS = st.text(max_size=12) | st.sampled_from(["/data", "10Gi", "0", "A100:1", "a b", "..", "é"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
TASKS = st.fixed_dictionaries(
    {"run": st.just("x")},
    optional={
        "name": WORDS,
        "num_nodes": st.integers(-1, 3),
        "workdir": WORDS,
        "envs": st.dictionaries(WORDS, VALUES, max_size=2),
        "secrets": st.dictionaries(WORDS, WORDS, max_size=2),
        "volumes": st.dictionaries(WORDS, WORDS, max_size=2),
        "file_mounts": st.dictionaries(WORDS, WORDS, max_size=1),
        "resources": st.dictionaries(
            st.sampled_from(["cpus", "memory", "accelerators", "ports", "image_id", "labels"]),
            VALUES,
            max_size=2,
        ),
    },
)


async def test_no_task_at_all_is_a_failure_of_the_server(url: str) -> None:
    loop = asyncio.get_running_loop()

    @settings(max_examples=100, deadline=None)
    @given(TASKS)
    def submit(task: dict[str, Any]) -> None:
        asked = ask(url, "POST", "/tasks/submit", task, JANE)
        code, answer = asyncio.run_coroutine_threadsafe(asked, loop).result(timeout=20)
        assert code in (200, 422), (code, answer)

    await asyncio.to_thread(submit)

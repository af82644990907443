"""A task's log across restarts of the kubelet that has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from kvestigate.client.api import Api
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.errors import NotFound, to_status
from kvestigate.http.message import Request, Response
from kvestigate.jobs.interface import LogRequest
from kvestigate.jobs.running.log_lines import task_lines
from kvestigate.jobs.tasks.statuses import TaskJob

A, B = (b"2026-01-01T00:00:01.%dZ %c\n" % (number, 96 + number) for number in (1, 2))
RUNNING: dict[str, Any] = {"running": {}}
ENDED: dict[str, Any] = {"terminated": {"exitCode": 0}}
UNTOLD: dict[str, Any] = {}
LABELS = {"task-id": "abc12345", "node-idx": "0"}


class Cluster:
    """One pod: what is known of it when it is looked at, and its log each time it is asked for."""

    def __init__(
        self, states: Sequence[dict[str, Any] | None], logs: Sequence[bytes | None]
    ) -> None:
        self._states = list(states)
        self._logs = list(logs)

    async def handle(self, request: Request) -> Response:
        if request.path.endswith("/log"):
            log = self._logs.pop(0)
            return _missing() if log is None else Response(200, [], log)
        if request.path.endswith("/jobs"):
            complete = [{"type": "Complete", "status": "True"}]
            meta = {"name": "j", "labels": LABELS, "resourceVersion": "1"}
            job = {"metadata": meta, "status": {"conditions": complete}}
            return _json({"type": "ADDED", "object": job})
        state = self._states.pop(0)
        items = [] if state is None else [_pod(state)]
        return _json({"metadata": {"resourceVersion": "1"}, "items": items})


def _pod(state: dict[str, Any]) -> dict[str, Any]:
    statuses = [{"name": "task", "state": state}] if state else []
    return {"metadata": {"name": "p", "labels": LABELS}, "status": {"containerStatuses": statuses}}


def _json(value: object) -> Response:
    return Response(200, [("content-type", "application/json")], msgspec.json.encode(value) + b"\n")


def _missing() -> Response:
    body = msgspec.json.encode(to_status(NotFound('pod "p" not found')))
    return Response(404, [("content-type", "application/json")], body)


@pytest.mark.parametrize(
    ("states", "logs", "lines"),
    [
        ([RUNNING, RUNNING, ENDED], [A, A + B], "ab"),
        ([RUNNING, RUNNING, RUNNING, RUNNING, ENDED], [A, None, A + B], "ab"),
        ([RUNNING, RUNNING, UNTOLD, ENDED], [A, A, A + B], "ab"),
        ([RUNNING, RUNNING, RUNNING, None], [A, None], "a"),
    ],
    ids=["ends", "kubelet knows no pod yet", "kubelet has told nothing yet", "pod is gone"],
)
async def test_only_the_end_of_a_pod_is_the_end_of_its_log(
    states: Sequence[dict[str, Any] | None], logs: Sequence[bytes | None], lines: str
) -> None:
    api = Api(InProcessTransport(Cluster(states, logs).handle))
    job = msgspec.convert({"metadata": {"labels": LABELS}}, TaskJob)
    found = [line.decode() async for line in task_lines(api, [job], LogRequest())]
    assert found == list(lines)

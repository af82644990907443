"""What is decided before a cluster is asked."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.app import AppPhase, RecordedStatus, pick_target, spec_hash, write_status
from kvestigate.app.manage import AppOptions, down, recorded_here, up
from kvestigate.client.access import Access
from kvestigate.client.auth.static import Anonymous
from kvestigate.client.endpoint import parse_endpoint
from kvestigate.errors import Conflict, ConnectionFailed
from tests.app.conftest import app
from tests.contexts import acting, planning

NOBODY = Access(parse_endpoint("http://127.0.0.1:1"), Anonymous("nobody"))


def record(phase: AppPhase = AppPhase.UP, server: str = "", **fields: Any) -> None:
    spec = app(command=["run"], **fields)
    write_status(
        RecordedStatus(
            namespace=spec.metadata.namespace,
            name=spec.metadata.name,
            target=pick_target(spec).target,
            spec_hash=spec_hash(spec),
            phase=phase,
            recorded_at="2026-10-05T12:34:56Z",
            app=spec,
            server=server or str(NOBODY.server),
        )
    )


ONE: dict[str, Any] = {"target": "workspace", "workspace": {"node": "a"}}
TWO: dict[str, Any] = {"target": "workspace", "distributed": {"shards": 2, "nodes": ["a", "b"]}}
ROOT: dict[str, Any] = {"target": "workspace", "workspace": {"node": "a", "root": "/srv/spaces"}}
PODS: dict[str, Any] = {"target": "k8s"}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (ONE, PODS, "App default/web is on a already, and would be in pods"),
        (PODS, ONE, "App default/web is in pods already, and would be on a"),
        (ONE, {**ONE, "workspace": {"node": "c"}}, "is on a already, and would be on c"),
        (ONE, ROOT, "is on a already, and would be on a in /srv/spaces"),
        (TWO, ONE, "is on b already, and would be on a"),
    ],
)
async def test_an_app_that_moves_is_taken_down_first(
    before: dict[str, Any], after: dict[str, Any], message: str
) -> None:
    record(**before)
    with pytest.raises(Conflict, match=message) as caught:
        await up(planning(NOBODY), AppOptions(app(command=["run"], **after)))
    assert "kvestigate app down" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("recorded", "after"),
    [
        (ONE, ONE),
        (ONE, TWO),
        (PODS, {**PODS, "env": {"A": "1"}}),
        ({**ONE, "phase": AppPhase.DOWN}, PODS),
        ({**ONE, "server": "https://elsewhere.example.org"}, PODS),
    ],
)
async def test_an_app_that_stays_is_asked_about(
    recorded: dict[str, Any], after: dict[str, Any]
) -> None:
    record(**recorded)
    with pytest.raises(ConnectionFailed):
        await up(acting(NOBODY), AppOptions(app(command=["run"], **after)))


async def test_a_cluster_that_does_not_answer_changes_no_record() -> None:
    record(**PODS)
    before = recorded_here(NOBODY, app())
    for act in (up, down):
        with pytest.raises(ConnectionFailed):
            await act(acting(NOBODY), AppOptions(app(env={"A": "1"})))
    assert recorded_here(NOBODY, app()) == before

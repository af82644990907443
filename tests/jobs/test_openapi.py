"""Requests of every shape that the served description allows, and some that it does not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.core.result import Ok

DESCRIPTION = json.loads(
    (Path(__file__).parents[2] / "docs" / "jobs.openapi.json").read_text(encoding="utf-8")
)
SCHEMA = schemathesis.openapi.from_dict(DESCRIPTION)
OPERATIONS = {
    f"{operation.method.upper()} {operation.path}": operation
    for found in SCHEMA.get_all_operations()
    if isinstance(found, Ok)
    for operation in [found.ok()]
}


def test_all_operations_are_tried() -> None:
    methods = [method for path in DESCRIPTION["paths"].values() for method in path]
    assert len(OPERATIONS) == len(methods) > 20


@pytest.mark.parametrize("name", OPERATIONS)
async def test_no_request_is_a_failure_of_the_server(name: str, url: str) -> None:
    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(OPERATIONS[name].as_strategy())
    def ask(case: Any) -> None:
        answer = case.call(base_url=url, headers={"x-user": "jane"}, timeout=10)
        assert answer.status_code < 500, (answer.status_code, answer.text)

    await asyncio.to_thread(ask)

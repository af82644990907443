"""A tenant's regular expression, quantity or selector never stops the server for the others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.attacks.conftest import Api
from tests.cluster.plane.kinds.custom.conftest import DEFINITIONS, PROBES, definition, probe

BACKTRACKING = ["^(a+)+$", "^(a|aa)+$", r"^(\w+\s?)*$", "^(.*a){12}$"]
"""Python's `re` tries exponentially many ways to match these."""
TEXT = "a" * 5_000 + "!"


@contextmanager
def soon() -> Iterator[None]:
    """Milliseconds of work, with room for a slow machine."""
    begun = time.process_time()
    yield
    assert time.process_time() - begun < 1


@pytest.mark.parametrize("pattern", BACKTRACKING)
async def test_the_pattern_of_a_schema(api: Api, pattern: str) -> None:
    await api.post(DEFINITIONS, definition({"type": "string", "pattern": pattern}))
    with soon():
        answer = await api.post(PROBES, probe(TEXT))
    assert answer.status == 422
    assert f"should match '{pattern}'" in answer.body["message"]


@pytest.mark.parametrize("pattern", BACKTRACKING)
async def test_the_pattern_of_a_rule(api: Api, pattern: str) -> None:
    rule = {"rule": f"self.text.matches(r'{pattern}')", "message": "no match"}
    text = {"type": "string", "maxLength": 10_000}
    schema = {"type": "object", "properties": {"text": text}, "x-kubernetes-validations": [rule]}
    assert (await api.post(DEFINITIONS, definition(schema))).status == 201
    with soon():
        answer = await api.post(PROBES, probe({"text": TEXT}))
    assert answer.status == 422
    assert "no match" in answer.body["message"]


async def test_a_pattern_that_comes_with_the_object(api: Api) -> None:
    rule = {"rule": "self.text.matches(self.pattern)", "message": "no match"}
    fields = {
        "text": {"type": "string", "maxLength": 100_000},
        "pattern": {"type": "string", "maxLength": 100},
    }
    schema = {"type": "object", "properties": fields, "x-kubernetes-validations": [rule]}
    assert (await api.post(DEFINITIONS, definition(schema))).status == 201
    for pattern in (*BACKTRACKING, "(.{0,1000}|x)*y", r"(\pL{500}){2}"):
        with soon():
            answer = await api.post(PROBES, probe({"text": "a" * 90_000 + "!", "pattern": pattern}))
        assert answer.status == 422


async def test_a_pattern_that_takes_too_long_to_compile(api: Api) -> None:
    with soon():
        answer = await api.post(
            DEFINITIONS, definition({"type": "string", "pattern": r"(\pL{500}){2}"})
        )
    assert answer.status == 422
    assert "error parsing regexp: expression too large" in answer.body["message"]


async def test_a_quantity_of_many_digits(api: Api) -> None:
    quota = {"metadata": {"name": "a"}, "spec": {"hard": {"cpu": "0" * 255 + "!"}}}
    with soon():
        answer = await api.post("/api/v1/namespaces/default/resourcequotas", quota)
    assert answer.status == 400


async def test_a_selector_of_many_blanks(api: Api) -> None:
    with soon():
        answer = await api.get(f"/api/v1/pods?labelSelector=a{'%20' * 20_000}")
    assert answer.status == 200


async def test_a_duration_of_many_digits(api: Api) -> None:
    rule = {"rule": "duration(self) > duration('1s')"}
    schema = {"type": "string", "maxLength": 100_000, "x-kubernetes-validations": [rule]}
    assert (await api.post(DEFINITIONS, definition(schema))).status == 201
    with soon():
        answer = await api.post(PROBES, probe("0" * 100_000 + "!"))
    assert answer.status == 422

"""Answers are as long as they may be, say what is missing, and lead on to all of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvestigate.cybernet.fitting import NOTE, Wish, fitted, wish_of
from kvestigate.cybernet.leaving import redacted
from kvestigate.cybernet.refusals import ConstraintViolated

PODS = [{"name": f"web-{n}", "status": "Running", "node": f"node-{n % 7}"} for n in range(10_000)]


def test_a_long_list_is_cut_and_all_of_it_can_be_had() -> None:
    answer = {"namespace": "all", "pods": PODS}
    seen: list[Any] = []
    cursor = ""
    while True:
        part = fitted(answer, Wish(8192, cursor))
        assert len(json.dumps(part, separators=(",", ":"))) <= 8192
        assert (next(iter(part)), part["namespace"]) == (NOTE, "all")
        seen += part["pods"]
        if part[NOTE]["complete"]:
            break
        assert part[NOTE]["shown"]["pods"].endswith("of 10000")
        cursor = part[NOTE]["cursor"]
    assert seen == PODS


def test_what_fits_is_left_as_it_is() -> None:
    answer = {"a": [1, 2], "b": {"c": "d"}}
    assert fitted(answer, Wish(8192)) == answer
    assert fitted(answer, Wish()) == answer


def test_only_some_fields() -> None:
    answer = {"pods": PODS[:2], "skipped": [], "server": "x"}
    part = fitted(answer, Wish(fields=("pods.name", "server", "nothing.at.all")))
    assert part == {"pods": [{"name": "web-0"}, {"name": "web-1"}], "server": "x"}


def test_small_members_stay_whole_beside_large_ones() -> None:
    answer = {"report": {"small": [1, 2, 3], "large": PODS}, "text": "x" * 100_000}
    part = fitted(answer, Wish(8192))
    assert part["report"]["small"] == [1, 2, 3]
    assert part["report"]["large"]
    assert "bytes left out" in part["text"]
    assert part[NOTE]["cursor"].startswith("report.large=")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=20), inner),
    max_leaves=60,
)


@given(st.dictionaries(st.text(max_size=20), values, max_size=40), st.integers(2048, 9000))
@settings(max_examples=60, deadline=None)
def test_no_answer_is_longer_than_its_budget(answer: dict[str, Any], budget: int) -> None:
    part = fitted(answer, Wish(budget))
    assert len(json.dumps(part, separators=(",", ":"), ensure_ascii=False).encode()) <= budget


@pytest.mark.parametrize(
    "given_wish",
    [{"budget": 1}, {"budget": 10**9}, {"budget": "x"}, {"cursor": 5}, {"fields": "a"}, 7],
)
def test_a_wish_that_is_not_allowed_is_refused(given_wish: Any) -> None:
    with pytest.raises(ConstraintViolated, match="answer"):
        wish_of(given_wish, 8192, 1 << 20)


@pytest.mark.parametrize("cursor", ["pods", "pods=x", "=3", "pods=-1", "pods=99999999999"])
def test_a_cursor_of_ones_own_is_refused(cursor: str) -> None:
    with pytest.raises(ConstraintViolated, match=r"answer\.cursor"):
        wish_of({"cursor": cursor}, 8192, 1 << 20)


CANARY = "c4n4ry-7f3a"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"


@pytest.mark.parametrize(
    "value",
    [
        {"env": [{"name": "DB_PASSWORD", "value": CANARY}]},
        {"env": {"API_KEY": CANARY}},
        {"annotations": {"last-applied": f'{{"password": "{CANARY}"}}'}},
        {"log": f"connecting with token={CANARY}\nok"},
        {"log": [f"Authorization: Bearer {CANARY}"]},
        {"error": f"GET https://user:{CANARY}@host/ failed"},
        {"command": f"curl -u me:{CANARY} https://x"},
        {"kubeconfig": f"users:\n- user:\n    token: {CANARY}\n"},
        {"deep": [[{"x": {"secretValue": CANARY}}]]},
        {"pem": f"-----BEGIN RSA PRIVATE KEY-----\n{CANARY}\n-----END RSA PRIVATE KEY-----"},
    ],
)
def test_canaries_do_not_leave(value: Any) -> None:
    assert CANARY not in json.dumps(redacted(value))


def test_what_has_the_form_of_a_secret_does_not_leave() -> None:
    assert JWT not in json.dumps(redacted({"line": f"got {JWT} back"}))


@pytest.mark.parametrize(
    "value",
    [
        {"name": "web-1", "node": "node-1"},
        {"image": "registry/app:1.2@sha256:ab"},
        {"n": [1, None]},
    ],
)
def test_what_is_no_secret_stays(value: Any) -> None:
    assert redacted(value) == value

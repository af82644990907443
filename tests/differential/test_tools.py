"""Masks hide only what differs between runs, and comparisons find all the rest."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.comparing import differences
from tests.differential.masking import masked
from tests.differential.script import Script, Step, fixtures, scripts

UID = "1b671a64-40d5-491e-99b0-da01ff1f3341"
OTHER_UID = "7d444840-9dc0-11d1-b245-5ffdce74fad2"


def mask(*bodies: Any, managed: bool = False) -> list[Any]:
    exchanges = [{"status": 200, "body": body} for body in bodies]
    return [each["body"] for each in masked(exchanges, "ns-1", managed=managed)]


def obj(version: str, **metadata: Any) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"resourceVersion": version, **metadata}}


def test_versions_become_their_rank() -> None:
    first, second, again = mask(obj("70"), obj("900"), obj("70"))
    assert first == again == obj("<rv 1>")
    assert second == obj("<rv 2>")


def test_a_list_is_only_known_not_to_lag_behind() -> None:
    def listed(version: str) -> dict[str, Any]:
        return {"kind": "ConfigMapList", "metadata": {"resourceVersion": version}, "items": []}

    _, fresh, stale = mask(obj("70"), listed("75"), listed("20"))
    assert fresh["metadata"]["resourceVersion"] == "<now>"
    assert stale["metadata"]["resourceVersion"] == "20"


def test_uids_keep_their_identity() -> None:
    body = {"a": UID, "b": f"of {OTHER_UID}", "c": UID}
    assert mask(body) == [{"a": "<uid 1>", "b": "of <uid 2>", "c": "<uid 1>"}]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("in ns-1", "in {ns}"),
        ("2026-11-15T23:00:00Z", "<time>"),
        ("2026-11-15T23:00:00.123456Z", "<time>"),
        ("2001-01-01T00:00:00Z", "2001-01-01T00:00:00Z"),
        ("10.96.3.4", "<ip 1>"),
        ("192.0.2.1", "192.0.2.1"),
        ("kube-api-access-x7k2p", "kube-api-access-?????"),
        ('no kind "X" in scheme "pkg/x.go:1"', 'no kind "X"'),
        ("12345", "12345"),
    ],
)
def test_texts(text: str, shown: str) -> None:
    assert mask({"message": text}) == [{"message": shown}]


def test_generated_names_keep_their_beginning() -> None:
    made = obj("5", name="web-x7k2p", generateName="web-")
    body, message = mask(made, {"message": 'pods "web-x7k2p" not found'})
    assert body["metadata"]["name"] == "web-?????"
    assert message == {"message": 'pods "web-?????" not found'}


def test_managed_fields_are_compared_only_where_they_are_the_subject() -> None:
    body = {"metadata": {"managedFields": [{"manager": "me"}]}}
    assert mask(body) == [{"metadata": {}}]
    assert mask(body, managed=True) == [body]


def test_managers_are_in_the_order_of_one_second_whenever_they_wrote() -> None:
    def body(*entries: tuple[str, str]) -> dict[str, Any]:
        told = [{"manager": name, "operation": "Apply", "time": time} for name, time in entries]
        return {"metadata": {"managedFields": told}}

    long_ago = "2020-01-01T00:00:00Z"
    crossed = body(("z", long_ago), ("me", "2026-11-15T23:00:00Z"), ("ctl", "2026-11-15T23:00:01Z"))
    assert mask(crossed, managed=True) == [
        body(("z", "<time>"), ("ctl", "<time>"), ("me", "<time>"))
    ]


SCRIPT = Script("topic", "name", (Step("GET", "/x"),))


@pytest.mark.parametrize(
    ("real", "ours"),
    [
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {}),
        ({}, {"a": 1}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": [1]}, {"a": [1, 2]}),
        ({"a": 1}, {"a": True}),
        ({"a": ""}, {"a": None}),
        ({"a": {}}, {"a": None}),
    ],
)
def test_what_differs_is_found(real: Any, ours: Any) -> None:
    def run(body: Any) -> list[dict[str, Any]]:
        return [{"status": 200, "body": body}]

    assert differences(SCRIPT, run(real), run(ours))
    assert not differences(SCRIPT, run(real), run(real))
    assert not differences(SCRIPT, run(ours), run(ours))


def test_statuses_are_compared() -> None:
    found = differences(SCRIPT, [{"status": 200}], [{"status": 201}])
    assert len(found) == 1


def test_fixtures_are_not_changed_by_the_scripts_that_use_them() -> None:
    assert len(scripts()) > 300
    assert fixtures()["configmap"]["metadata"] == {"name": "a"}

"""Findings come and go, and a cluster that does not answer takes none of them away."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from typing import Any

from kvestigate.errors import ConnectionFailed, KvestigateError
from kvestigate.health.audit import Audit, examine
from kvestigate.health.watching import Change, changes, chat_message, known_after, line, watch
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from tests.health.snapshots import Object, snapshot
from tests.snapshot.objects import container, pod


def crashing(name: str, state: Object | None = None) -> Object:
    body: dict[str, Any] = pod(name, container(cpu="1"), on="n")
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    body["status"]["containerStatuses"] = [{"name": "main", "state": state or waiting}]
    return body


def seen(*names: str) -> Audit:
    return examine(snapshot({listings.PODS: [crashing(name) for name in names]}), "https://x.test")


DENIED = examine(snapshot({}, denied=[listings.PODS]), "https://x.test")


def told(made: tuple[Change, ...]) -> list[tuple[str, str]]:
    return [(change.what.value, change.finding.subject.name) for change in made]


async def test_only_changes_are_told() -> None:
    answers: list[Audit | KvestigateError] = [
        seen("a"),
        seen("a"),
        ConnectionFailed("nobody is there"),
        seen("a", "b"),
        DENIED,
        seen("b"),
    ]
    failures: list[KvestigateError] = []

    async def look() -> Audit:
        answer = answers.pop(0)
        if isinstance(answer, KvestigateError):
            raise answer
        return answer

    made: list[list[tuple[str, str]]] = []
    async with aclosing(watch(look, 0.0, failures.append)) as rounds:
        async for one in rounds:
            made.append(told(one))
            if not answers:
                break
    assert made == [[("appeared", "a")], [("appeared", "b")], [("gone", "a")]]
    assert [error.message for error in failures] == ["nobody is there"]


def test_what_could_not_be_checked_is_not_gone() -> None:
    known = known_after({}, seen("a"))
    assert known_after(known, DENIED) == known


def test_a_finding_that_gets_worse_is_told() -> None:
    known = known_after({}, seen("a"))
    milder = {key: replace(one, severity=Severity.WARNING) for key, one in known.items()}
    assert told(changes(milder, known, DENIED.captured_at)) == [("worsened", "a")]
    assert told(changes(known, milder, DENIED.captured_at)) == []


def test_a_line_and_a_message_are_data() -> None:
    (change,) = changes({}, known_after({}, seen("a")), DENIED.captured_at)
    evil = replace(change, finding=replace(change.finding, evidence="\x1b[2J\nnext\u202e"))
    assert line(evil).isprintable()
    assert "12:00:00 appeared CRITICAL Pod default/a (crash-loop): " in line(change)
    many = chat_message([change] * 30)
    assert many["text"].splitlines()[-1] == "and 10 more"

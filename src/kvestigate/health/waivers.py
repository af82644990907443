"""Findings that somebody has accepted: by a waiver, or because they are in a baseline. Pure.

A waiver says who accepts what, why, and until when; afterwards it counts no longer. It is an entry
of a file, or annotations of the object:

    kvestigate.dev/waive: no-requests, crash-loop
    kvestigate.dev/waive-owner: ada@example.com
    kvestigate.dev/waive-reason: replaced next month
    kvestigate.dev/waive-expires: "2026-12-31"
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from typing import Annotated, Any

from kvestigate.errors import InputError, nearest
from kvestigate.health.model import Finding, Subject
from kvestigate.health.registry import RULES
from kvestigate.kube.documents import one_document, read

_ANNOTATION = "kvestigate.dev/waive"


def _day(value: Any, path: str) -> date:
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise InputError(
            f"{value!r} is not a date", where=path, hint="write it as 2026-12-31"
        ) from None


def _known_rule(value: Any, path: str) -> str:
    names = [rule.name for rule in RULES]
    if value in names:
        return str(value)
    near = nearest(str(value), names)
    hint = f"did you mean {near!r}?" if near else "docs/rules.md lists the rules"
    raise InputError(f"there is no rule {value!r}", where=path, hint=hint)


def _words(value: Any, path: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError("is empty", where=path, hint="a waiver needs an owner and a reason")
    return value


@dataclass(frozen=True, slots=True)
class Waiver:
    rule: Annotated[str, _known_rule]
    owner: Annotated[str, _words]
    """Who answers for it."""
    reason: Annotated[str, _words]
    expires: Annotated[date, _day]
    """The last day on which it counts, in UTC."""
    subject: str = "*"
    """`Deployment shop/web`, `* shop/*`: the object, with `*` for any part."""

    def accepts(self, finding: Finding, today: date) -> bool:
        return (
            finding.rule == self.rule
            and today <= self.expires
            and fnmatchcase(str(finding.subject), self.subject)
        )


@dataclass(frozen=True, slots=True)
class _Waivers:
    waivers: tuple[Waiver, ...]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A finding that does not count for `--fail-on`."""

    rule: str
    subject: Subject
    by: str
    """`baseline` or `waiver`"""
    owner: str = ""
    reason: str = ""
    expires: date | None = None


def read_waivers(data: bytes, source: str) -> tuple[Waiver, ...]:
    """The entries under `waivers` of a YAML file."""
    file = one_document(data, source, "list of waivers")
    with file.mistakes():
        return read(_Waivers, file.value).waivers


@dataclass(frozen=True, slots=True)
class Ignored:
    """A waiver in the annotations of an object that does not count."""

    subject: Subject
    problem: str
    """`owner is empty; expires '' is not a date`"""


def annotated(annotations: Mapping[str, str], subject: Subject) -> Iterator[Waiver | Ignored]:
    """The waivers in the annotations of an object, also those that do not count."""
    for rule in annotations[_ANNOTATION].split(",") if _ANNOTATION in annotations else ():
        entry = {
            "rule": rule.strip(),
            "subject": _literally(str(subject)),
            **{
                part: annotations.get(f"{_ANNOTATION}-{part}", "")
                for part in ("owner", "reason", "expires")
            },
        }
        try:
            yield read(Waiver, entry)
        except InputError as mistake:
            yield Ignored(subject, mistake.message)


def accepted(
    findings: Iterable[Finding], waivers: Collection[Waiver], baseline: Collection[str], today: date
) -> Iterator[Accepted]:
    for finding in findings:
        waiver = next((waiver for waiver in waivers if waiver.accepts(finding, today)), None)
        if waiver is not None:
            yield Accepted(
                finding.rule,
                finding.subject,
                "waiver",
                waiver.owner,
                waiver.reason,
                waiver.expires,
            )
        elif finding.key in baseline:
            yield Accepted(finding.rule, finding.subject, "baseline")


def _literally(text: str) -> str:
    """A pattern that matches just this text; names of objects may not hold these characters."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in text)

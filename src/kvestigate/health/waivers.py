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


@dataclass(frozen=True, slots=True)
class Waiver:
    rule: str
    owner: str
    """Who answers for it."""
    reason: str
    expires: Annotated[date, _day]
    """The last day on which it counts, in UTC."""
    subject: str = "*"
    """`Deployment shop/web`, `* shop/*`: the object, with `*` for any part."""

    def __post_init__(self) -> None:
        names = [rule.name for rule in RULES]
        if self.rule not in names:
            near = nearest(self.rule, names)
            raise InputError(
                f"there is no rule {self.rule!r}",
                where="rule",
                hint=f"did you mean {near!r}?" if near else "docs/rules.md lists the rules",
            )
        for field in ("owner", "reason"):
            if not getattr(self, field).strip():
                raise InputError("is empty", where=field, hint="a waiver needs both")

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


def annotated(annotations: Mapping[str, str], subject: Subject) -> Iterator[Waiver]:
    """The waivers in the annotations of an object. One that is incomplete does not count."""
    for rule in annotations.get(_ANNOTATION, "").split(","):
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
        except InputError:
            continue


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

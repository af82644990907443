"""What changed between two audits, object by object. Pure.

Live usage is left out because it always changes. So is the evidence of findings that are in both
audits, such as the number of restarts.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kvestigate.errors import InputError
from kvestigate.health.audit import SCHEMA
from kvestigate.health.model import Subject, key_of
from kvestigate.render.blocks import Block, Cell, Facts, Field, Table, Tone, table, text
from kvestigate.render.human import cores, size

Document = dict[str, Any]

_LIVE = "metrics"
_LIVE_FIELDS = {"at_work", "memory_used_mib", "utilization"}
"""Fields of GPUs that always change."""

# The fields that identify a row of a list: the first of these sets that the row has.
_IDENTITIES = (
    ("kind", "namespace", "name"),
    ("namespace", "name"),
    ("name",),
    ("namespace", "pod", "container", "resource"),
    ("uuid",),
    ("node",),
    ("host", "path"),
)


class ChangeKind(enum.Enum):
    APPEARED = "appeared"
    GONE = "gone"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Change:
    report: str
    """`nodes`, `workloads`"""
    subject: str
    """`Deployment/shop/web`, empty for the report as a whole"""
    what: ChangeKind
    field: str = ""
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class FindingLine:
    severity: str
    rule: str
    subject: str
    evidence: str


@dataclass(frozen=True, slots=True)
class AuditDifference:
    before: str
    """When the first audit was made."""
    after: str
    servers: tuple[str, ...]
    """The audited server, or both if they differ."""
    new_findings: tuple[FindingLine, ...]
    gone_findings: tuple[FindingLine, ...]
    changes: tuple[Change, ...]


def parse(data: bytes, where: str) -> Document:
    """An audit that `--json` wrote."""
    hint = "give files that `kvestigate audit --json FILE` wrote"
    try:
        document = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise InputError(f"not JSON: {error}", where=where, hint=hint) from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA or not isinstance(document.get("reports"), dict):
        raise InputError(f"schema is {schema!r}, not {SCHEMA!r}", where=where, hint=hint)
    return {"findings": [], "captured_at": "", "server": "", **document}


@dataclass(frozen=True, slots=True)
class DiffOptions:
    before: Document
    after: Document


def difference(before: Document, after: Document) -> AuditDifference:
    old, new = _findings(before), _findings(after)
    return AuditDifference(
        before=str(before["captured_at"]),
        after=str(after["captured_at"]),
        servers=tuple(dict.fromkeys((str(before["server"]), str(after["server"])))),
        new_findings=tuple(new[key] for key in new if key not in old),
        gone_findings=tuple(old[key] for key in old if key not in new),
        changes=tuple(_reports(before["reports"], after["reports"])),
    )


def keys(document: Document) -> frozenset[str]:
    """Of the findings of an audit, as `Finding.key` has them: what a baseline accepts."""
    return frozenset(
        key_of(str(finding["rule"]), msgspec.convert(finding["subject"], Subject))
        for finding in document["findings"]
    )


def _findings(document: Document) -> dict[tuple[str, str, str], FindingLine]:
    lines = {}
    for finding in document["findings"]:
        subject = finding["subject"]
        parts = (subject["kind"], subject.get("namespace"), subject["name"])
        name = "/".join(part for part in (*parts, subject.get("container")) if part)
        line = FindingLine(finding["severity"], finding["rule"], name, finding["evidence"])
        lines[line.severity, line.rule, line.subject] = line
    return lines


def _reports(before: Document, after: Document) -> Iterator[Change]:
    for name in [*before, *(name for name in after if name not in before)]:
        if name != _LIVE:
            yield from _values(name, "", "", before.get(name, {}), after.get(name, {}))


def _values(report: str, subject: str, field: str, before: Any, after: Any) -> Iterator[Change]:
    if before == after:
        return
    if _is_table(before) and _is_table(after):
        yield from _rows(report, subject, before, after)
    elif isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            if key in _LIVE_FIELDS:
                continue
            inner = f"{field}.{key}" if field else key
            yield from _values(report, subject, inner, before.get(key), after.get(key))
    else:
        yield Change(report, subject, ChangeKind.CHANGED, field, _shown(before), _shown(after))


def _rows(
    report: str, owner: str, before: Sequence[Document], after: Sequence[Document]
) -> Iterator[Change]:
    old, new = _by_identity(owner, before), _by_identity(owner, after)
    for subject, row in old.items():
        if subject not in new:
            yield Change(report, subject, ChangeKind.GONE)
        else:
            yield from _values(report, subject, "", row, new[subject])
    for subject in new:
        if subject not in old:
            yield Change(report, subject, ChangeKind.APPEARED)


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(row, dict) and _identity(row) for row in value
    )


def _by_identity(owner: str, rows: Sequence[Document]) -> dict[str, Document]:
    prefix = f"{owner}/" if owner else ""
    return {f"{prefix}{_identity(row)}": row for row in rows}


def _identity(row: Mapping[str, Any]) -> str:
    for fields in _IDENTITIES:
        if all(field in row for field in fields):
            return "/".join(str(row[field]) for field in fields if row[field] != "")
    return ""


def _shown(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()


def blocks(difference: AuditDifference) -> Sequence[Block]:
    made: list[Block] = [Facts([("before", difference.before), ("after", difference.after)])]
    if len(difference.servers) > 1:
        made.append(
            text(f"the audits are of two servers: {' and '.join(difference.servers)}", Tone.WARN)
        )
    if not (difference.new_findings or difference.gone_findings or difference.changes):
        return [*made, text("no changes", Tone.GOOD)]
    for title, tone, lines in (
        ("New findings", Tone.BAD, difference.new_findings),
        ("Resolved findings", Tone.GOOD, difference.gone_findings),
    ):
        if lines:
            made += [text(title, Tone.STRONG), _lines(lines, tone)]
    if difference.changes:
        made += [text("Changes", Tone.STRONG), _changes(difference.changes)]
    return made


def _lines(lines: Sequence[FindingLine], tone: Tone) -> Table:
    return table(
        lines,
        Field("severity", lambda row: Cell(row.severity, tone)),
        Field("rule", lambda row: row.rule),
        Field("object", lambda row: row.subject),
        Field("evidence", lambda row: row.evidence),
    )


def _changes(changes: Sequence[Change]) -> Table:
    return table(
        changes,
        Field("report", lambda row: row.report),
        Field("object", lambda row: row.subject or "-"),
        Field("change", lambda row: row.field or row.what.value),
        Field("before", lambda row: _readable_pair(row)[0] or "-"),
        Field("after", lambda row: _readable_pair(row)[1] or "-"),
    )


def _readable_pair(change: Change) -> tuple[str, str]:
    """Both values in readable units; as exact bytes where rounding makes them equal."""
    before, after = (_readable(change.field, value) for value in (change.before, change.after))
    if before == after and change.before.isdigit() and change.after.isdigit():
        return f"{int(change.before):,} B", f"{int(change.after):,} B"
    return before, after


def _readable(field: str, value: str) -> str:
    """`2.3 TiB`, `4 CPUs`: the unit follows from the name of the field."""
    if value.isdigit() and "bytes" in field:
        return size(int(value))
    if value.isdigit() and "cpu_millis" in field:
        return f"{cores(int(value) / 1000)} CPUs"
    return value

"""The results of `debug` as blocks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.client.whoami import Identity
from kvestigate.debug.api import Answer, indented
from kvestigate.debug.context import ContextReport, TlsFacts
from kvestigate.debug.exec_url import ExecUrlReport
from kvestigate.debug.timing import TimingReport
from kvestigate.debug.verdict import CallTiming
from kvestigate.render.blocks import (
    Block,
    Cell,
    Column,
    Facts,
    Field,
    Table,
    Text,
    Tone,
    table,
    text,
)
from kvestigate.render.human import milliseconds, size

Pairs = list[tuple[str, str | Cell]]


def context_blocks(report: ContextReport) -> Sequence[Block]:
    """The source of the configuration, the server, the user, and the server's view."""
    pairs: Pairs = [
        ("source", report.source),
        *(("kubeconfig", file) for file in report.files),
        ("context", report.context or "(none)"),
        ("cluster", report.cluster or "(none)"),
        ("user", report.user or "(none)"),
        ("namespace", report.namespace),
        ("server", report.server),
        ("authentication", report.authentication),
    ]
    if report.impersonation:
        pairs.append(("impersonating", Cell(report.impersonation, Tone.WARN)))
    pairs += [*_tls(report.tls), ("proxy", report.proxy or "(none)"), *_server(report)]
    return [Facts(pairs)]


def _tls(tls: TlsFacts | None) -> Pairs:
    if tls is None:
        return [("tls", Cell("none (plain http; credentials are not sent)", Tone.WARN))]
    if tls.verified is False:
        return [("tls", Cell("NOT VERIFIED: insecure-skip-tls-verify is set", Tone.BAD))]
    how = "verified" if tls.verified else "not verified yet (no answer); it will be"
    return [
        ("tls", f"{how} for {tls.server_name} against {tls.trust}"),
        *(("authority", f"{ca.subject}, expires {ca.expires}") for ca in tls.authorities),
    ]


def _server(report: ContextReport) -> Pairs:
    pairs: Pairs = []
    if report.server_version:
        platform = f" ({report.platform})" if report.platform else ""
        pairs.append(("server version", f"{report.server_version}{platform}"))
    if report.identity:
        pairs.append(("server sees", Cell(_identity(report.identity), Tone.GOOD)))
    if report.problem:
        pairs.append(("problem", Cell(report.problem, Tone.BAD)))
    return pairs


def _identity(identity: Identity) -> str:
    groups = f" in {', '.join(identity.groups)}" if identity.groups else ""
    return f"{identity.username}{groups}"


def answer_blocks(answer: Answer) -> Sequence[Block]:
    """The status and headers as facts, then the body, JSON indented."""
    good = 200 <= answer.status < 300
    facts = Facts(
        [
            ("request", f"{answer.method} {answer.path}"),
            ("status", Cell(str(answer.status), Tone.GOOD if good else Tone.BAD)),
            (
                "time",
                f"{milliseconds(answer.total_seconds)} "
                f"(headers after {milliseconds(answer.head_seconds)})",
            ),
            ("size", size(answer.size)),
            *answer.headers.items(),
        ]
    )
    body = indented(answer.body).rstrip("\n")
    blocks: list[Block] = [facts, *([text(body)] if body else [])]
    if answer.truncated:
        blocks.append(text("the rest of the body is not shown", Tone.WARN))
    return blocks


def timing_blocks(report: TimingReport) -> Sequence[Block]:
    """One row for each call, first on a new connection, then the verdict."""
    columns = (
        Column("call"),
        Column("connection"),
        Column("p50", number=True),
        Column("fastest", number=True),
        Column("slowest", number=True),
        Column("size", number=True),
    )
    rows = [_row(report.connecting, "new"), *(_row(sample, "open") for sample in report.calls)]
    healthy = report.verdict.startswith("healthy")
    return [
        text(f"{report.server}, {report.samples} samples each"),
        Table(columns, rows),
        Text(Cell(f"verdict: {report.verdict}", Tone.GOOD if healthy else Tone.WARN)),
    ]


def _row(sample: CallTiming, connection: str) -> list[str | Cell]:
    if sample.problem:
        return [sample.name, connection, "-", "-", "-", Cell(sample.problem, Tone.BAD)]
    times = (sample.p50, sample.fastest, sample.slowest)
    return [sample.name, connection, *(milliseconds(value) for value in times), size(sample.size)]


def exec_url_blocks(report: ExecUrlReport) -> Sequence[Block]:
    """The URLs of an exec, and the result of each handshake."""
    facts = Facts(
        [
            ("pod", f"{report.namespace}/{report.pod}"),
            ("container", report.container),
            ("node", report.node or "(not scheduled)"),
            ("phase", report.phase),
            ("http", report.http_url),
            ("websocket", report.websocket_url),
        ]
    )
    handshakes = table(
        report.handshakes,
        Field("offered", lambda row: row.offered),
        Field(
            "accepted", lambda row: Cell("yes", Tone.GOOD) if row.accepted else Cell("no", Tone.BAD)
        ),
        Field("answer", lambda row: row.answer),
    )
    return [facts, handshakes]

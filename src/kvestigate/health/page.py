"""An audit as one self-contained HTML page: no script, no network, no other file. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from kvestigate.health.audit import Audit, unaccepted
from kvestigate.health.model import Finding
from kvestigate.health.rendering import accepted_lines, no_problems, not_checked, section
from kvestigate.render.blocks import Block, Tone, text
from kvestigate.render.html import to_html
from kvestigate.render.human import counted, or_unknown
from kvestigate.render.severity import Severity
from kvestigate.reports.gpu import GpuReport
from kvestigate.reports.gpu_map import gpu_map
from kvestigate.reports.model import gap_line
from kvestigate.reports.nodes import NodeRow, NodesReport, Share
from kvestigate.reports.registry import REPORTS
from kvestigate.reports.rendering import only

_BAR = 100
"""The width of a full bar in its own units; the style scales it."""

_STYLE = """
:root { color-scheme: light dark; --good: #1a7f37; --warn: #9a6700; --bad: #cf222e;
  --line: #8884; --used: #0969da; --free: #8883; }
@media (prefers-color-scheme: dark) {
  :root { --good: #3fb950; --warn: #d29922; --bad: #ff7b72; --used: #58a6ff; } }
body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere } h2 { font-size: 1.1rem; margin-top: 2rem }
.cards { display: flex; flex-wrap: wrap; gap: .6rem }
.card { border: 1px solid var(--line); border-radius: .4rem; padding: .4rem .9rem; flex: 1 0 6rem }
.card b { display: block; font-size: 1.3rem; font-variant-numeric: tabular-nums }
nav { margin: 1rem 0 } nav a { margin-right: .8rem; color: var(--used) }
table { border-collapse: collapse; margin: .5rem 0; display: block; overflow-x: auto }
th, td { text-align: left; white-space: nowrap; padding: .2rem .8rem .2rem 0;
  border-bottom: 1px solid var(--line); vertical-align: top }
th { font-weight: 600 } .number { text-align: right; font-variant-numeric: tabular-nums }
th:first-child, td:first-child { position: sticky; left: 0; background: Canvas }
.good { color: var(--good) } .warn { color: var(--warn) } .bad { color: var(--bad) }
.strong { font-weight: 600 } .dim { opacity: .7 }
.finding { overflow-wrap: anywhere; border-left: 4px solid var(--line); padding: .3rem .8rem;
  margin: .6rem 0 }
.finding.critical { border-color: var(--bad) } .finding.warning { border-color: var(--warn) }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; user-select: all }
svg { vertical-align: middle } .bar { width: min(120px, 12vw) }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem }
.used { fill: var(--used) } .free { fill: var(--free) }
.over { fill: var(--bad) } .idle { fill: var(--warn) }
"""


def to_page(audit: Audit) -> str:
    """A complete HTML document."""
    title = f"Audit of {escape(audit.server)}, {audit.captured_at:%Y-%m-%d %H:%M:%S} UTC"
    parts = [
        f"<h1>{title}</h1>",
        *([f'<p class="warn">{escape(only(audit.namespace))}</p>'] if audit.namespace else []),
        _cards(audit),
        _contents(),
        '<h2 id="findings">Findings</h2>',
        *_findings(audit),
        *_charts(audit),
        *(
            f'<h2 id="{report.name}">{_title(report.name)}</h2>\n{to_html(section(report, audit))}'
            for report in REPORTS
        ),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # Names in a cluster are untrusted: if one is not escaped, it still must not run anything.
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _cards(audit: Audit) -> str:
    """The most important numbers of the audit."""
    counts = Counter(finding.severity for finding in unaccepted(audit))
    cards = [
        (str(counts[Severity.CRITICAL]), "critical", "bad" if counts[Severity.CRITICAL] else ""),
        (str(counts[Severity.WARNING]), "warnings", "warn" if counts[Severity.WARNING] else ""),
    ]
    nodes = audit.reports["nodes"]
    if isinstance(nodes, NodesReport):
        cards.append((_ready(nodes), "nodes ready", ""))
        shares = (
            ("of CPU requested", nodes.total.cpu_millis),
            ("of memory requested", nodes.total.memory_bytes),
        )
        for words, share in shares:
            if share.allocatable != 0:
                cards.append((or_unknown(share.ratio, "{:.0%}".format), words, ""))
        gpus = nodes.total.gpus
        if gpus.allocatable != 0:
            allocated = f"{or_unknown(gpus.requested)}/{or_unknown(gpus.allocatable)}"
            cards.append((allocated, "GPUs allocated", ""))
    body = "".join(
        f'<div class="card"><b class="{tone}">{figure}</b>{words}</div>'
        for figure, words, tone in cards
    )
    return f'<div class="cards">{body}</div>'


def _ready(report: NodesReport) -> str:
    if report.nodes is None:
        return "unknown"
    return f"{sum(bool(row.ready) for row in report.nodes)}/{len(report.nodes)}"


def _contents() -> str:
    names = ("findings", *(report.name for report in REPORTS))
    links = (f'<a href="#{name}">{_title(name)}</a>' for name in names)
    return f"<nav>{' '.join(links)}</nav>"


def _title(name: str) -> str:
    return "GPUs" if name == "gpu" else name.capitalize()


def _findings(audit: Audit) -> list[str]:
    lines = [*map(gap_line, audit.gaps), *not_checked(audit)]
    notes: list[Block] = [text(line, Tone.WARN) for line in lines]
    notes += [text(line, Tone.DIM) for line in accepted_lines(audit)]
    findings = unaccepted(audit)
    if findings:
        return [*map(_finding, findings), to_html(notes)]
    return [f"<p>{no_problems(audit)}</p>", to_html(notes)]


def _finding(finding: Finding) -> str:
    severity = finding.severity
    return (
        f'<div class="finding {severity.value}"><span class="{severity.tone.value} strong">'
        f'{severity.value}</span> <span class="strong">{escape(str(finding.subject))}</span>: '
        f'{escape(finding.evidence)}<br><span class="dim">{escape(finding.why)}</span><br>'
        f"{_effects(finding)}{_changed(finding)}"
        f"<code>{escape(finding.command)}</code></div>"
    )


def _changed(finding: Finding) -> str:
    if finding.changed is None:
        return ""
    return f'<span class="dim">{escape(str(finding.changed))}.</span><br>'


def _effects(finding: Finding) -> str:
    if not finding.effects:
        return ""
    lines = (f"{effect.subject}: {effect.evidence}" for effect in finding.effects)
    body = "".join(f"<li>{escape(line)}</li>" for line in lines)
    affected = counted(len(finding.effects), "object")
    return f"<details><summary>{affected} affected</summary><ul>{body}</ul></details>"


def _charts(audit: Audit) -> list[str]:
    """Allocation per node, and a square for every allocatable GPU."""
    made = []
    nodes, gpus = audit.reports["nodes"], audit.reports["gpu"]
    if isinstance(nodes, NodesReport) and nodes.nodes and nodes.total.pods.requested is not None:
        made += ["<h2>Allocation per node</h2>", _allocation(nodes.nodes)]
    if isinstance(gpus, GpuReport) and gpus.nodes and gpus.requested is not None:
        made += ["<h2>GPU map</h2>", gpu_map(gpus)]
    return made


def _allocation(rows: Sequence[NodeRow]) -> str:
    body = "".join(
        f"<tr><td>{escape(row.name)}</td><td>{_bar(row.cpu_millis)}</td>"
        f"<td>{_bar(row.memory_bytes)}</td><td>{_bar(row.gpus)}</td><td>{_bar(row.pods)}</td></tr>"
        for row in rows
    )
    head = "".join(f"<th>{title}</th>" for title in ("node", "cpu", "memory", "gpu", "pods"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _bar(share: Share) -> str:
    if not share.allocatable or share.ratio is None:
        return "-"
    used = min(share.ratio, 1) * _BAR
    kind = "over" if share.ratio > 1 else "used"
    return (
        f'<svg class="bar" viewBox="0 0 {_BAR} 10" preserveAspectRatio="none" height="10" '
        f'role="img" aria-label="{share.ratio:.0%}">'
        f'<rect class="free" width="{_BAR}" height="10"/>'
        f'<rect class="{kind}" width="{used:.1f}" height="10"/></svg> {share.ratio:.0%}'
    )

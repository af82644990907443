"""Overview: what is wrong, grouped by cause; capacity; the GPU map; what changed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kvestigate.console.frame import Visit, copyable, notice, scrolling
from kvestigate.console.links import Links
from kvestigate.console.markup import Child, Html, blocks, element, joined
from kvestigate.health.audit import Audit, unaccepted
from kvestigate.health.model import Effect, Finding, Subject
from kvestigate.health.rendering import accepted_lines, no_problems, not_checked
from kvestigate.health.watching import Change, ChangeKind
from kvestigate.render.blocks import Tone, text
from kvestigate.render.human import cores, counted, or_unknown, size
from kvestigate.render.severity import Severity
from kvestigate.reports.gpu import GpuReport
from kvestigate.reports.gpu_map import gpu_map
from kvestigate.reports.model import gap_line
from kvestigate.reports.nodes import NodesReport, Share

_EFFECTS = 50
"""Effects of a finding that are shown."""
_OF_A_RULE = 10
"""Findings of one rule that are shown: hundreds of them have one remedy."""
_NODES = 100
"""Nodes of the GPU map."""
_CHANGES = 12


def overview(
    visit: Visit, audit: Audit, is_new: Callable[[str], bool], history: Iterable[Change]
) -> Html:
    """The part of the page that is replaced when something changed."""
    return joined(
        element(
            "section",
            _figures(audit),
            aria_label="Key figures",
        ),
        element(
            "div",
            element("section", element("h2", "What is wrong"), *_findings(visit, audit, is_new)),
            element(
                "div",
                element("section", element("h2", "Capacity"), _capacity(audit)),
                *_gpus(audit),
                element("section", element("h2", "What changed"), _changes(visit, history)),
                class_="aside",
            ),
            class_="columns",
        ),
        element("p", f"Read {audit.objects:,} objects at {audit.captured_at:%H:%M:%S} UTC with "
                f"{counted(audit.checks, 'check')}.", class_="dim"),
    )  # fmt: skip


def reading(progress: Mapping[str, int]) -> Html:
    """The page while the first audit is made."""
    lines = [element("li", f"{name}: {count:,}") for name, count in sorted(progress.items())]
    total = sum(progress.values())
    return notice(f"Reading the cluster: {total:,} objects so far.", element("ul", *lines))


def _figures(audit: Audit) -> Html:
    counts = Counter(finding.severity for finding in unaccepted(audit))
    critical, warning = counts[Severity.CRITICAL], counts[Severity.WARNING]
    cards = [
        _card(str(critical), "critical", "bad" if critical else "good"),
        _card(str(warning), "warnings", "warn" if warning else "good"),
    ]
    nodes, gpus = audit.reports["nodes"], audit.reports["gpu"]
    if isinstance(nodes, NodesReport):
        cards.append(_card(_ready(nodes), "nodes ready"))
        cards.append(_card(or_unknown(nodes.total.pods.requested, "{:,}".format), "pods"))
    if isinstance(gpus, GpuReport) and gpus.allocatable != 0:
        cards.append(_card(_of(gpus.requested, gpus.allocatable), "GPUs allocated"))
        if gpus.at_work is not None:
            cards.append(_card(_of(gpus.at_work, gpus.requested), "allocated GPUs busy"))
    return element("div", *cards, class_="cards")


def _of(part: int | None, whole: int | None) -> str:
    return f"{or_unknown(part)} of {or_unknown(whole)}"


def _card(figure: str, words: str, tone: str = "") -> Html:
    return element("div", element("b", figure, class_=tone or None), " ", words, class_="card")


def _ready(report: NodesReport) -> str:
    if report.nodes is None:
        return "unknown"
    return _of(sum(bool(row.ready) for row in report.nodes), len(report.nodes))


def _findings(visit: Visit, audit: Audit, is_new: Callable[[str], bool]) -> list[Html]:
    findings = unaccepted(audit)
    lines = [*map(gap_line, audit.gaps), *not_checked(audit)]
    notes = [blocks([text(line, Tone.WARN) for line in lines])] if lines else []
    notes += [blocks([text(line, Tone.DIM) for line in accepted_lines(audit)])]
    if not findings:
        return [element("p", no_problems(audit), class_="notice good"), *notes]
    shown, left = _first_of_each_rule(findings)
    drawn = [_finding(visit.links, finding, is_new(finding.key)) for finding in shown]
    more = [
        element("p", f"{count:,} more {rule} findings: see them with `audit --all`", class_="dim")
        for rule, count in left.items()
    ]
    return [element("div", *drawn, class_="rows"), *more, *notes]


def _first_of_each_rule(findings: Sequence[Finding]) -> tuple[list[Finding], dict[str, int]]:
    """The first findings of each rule, and how many more of it there are."""
    seen: Counter[str] = Counter()
    shown = []
    for finding in findings:
        seen[finding.rule] += 1
        if seen[finding.rule] <= _OF_A_RULE:
            shown.append(finding)
    return shown, {rule: n - _OF_A_RULE for rule, n in seen.items() if n > _OF_A_RULE}


def _finding(links: Links, finding: Finding, new: bool) -> Html:
    severity = finding.severity
    head = element(
        "p",
        element("span", severity.value, class_=f"badge {severity.tone.value}"),
        element("span", "new", class_="badge new") if new else None,
        " ",
        subject_link(links, finding.subject),
        element("span", finding.rule, class_="rule dim"),
    )
    return element(
        "article",
        head,
        element("p", finding.evidence),
        element("p", finding.why, class_="dim"),
        _effects(links, finding.effects),
        copyable(finding.command),
        class_=f"finding {severity.value}",
    )


def subject_link(links: Links, subject: Subject) -> Html:
    address = links.object(subject.kind, subject.namespace, subject.name)
    return element("a", str(subject), href=address, class_="strong")


def _effects(links: Links, effects: Sequence[Effect]) -> Html | None:
    if not effects:
        return None
    items = [
        element("li", subject_link(links, effect.subject), ": ", effect.evidence)
        for effect in effects[:_EFFECTS]
    ]
    left = len(effects) - len(items)
    more = [element("li", f"{left} more")] if left else []
    summary = element("summary", f"{counted(len(effects), 'object')} affected")
    return element("details", summary, element("ul", *items, *more))


def _capacity(audit: Audit) -> Html:
    nodes = audit.reports["nodes"]
    if not isinstance(nodes, NodesReport):
        return element("p", "unknown")
    total = nodes.total
    rows = [
        _share("CPU", total.cpu_millis, lambda amount: cores(amount / 1000)),
        _share("Memory", total.memory_bytes, size),
        _share("GPUs", total.gpus, str),
        _share("Pods", total.pods, "{:,}".format),
    ]
    return element("table", element("tbody", *rows), class_="plain")


def _share(name: str, share: Share, unit: Callable[[int], str]) -> Html:
    words = f"{or_unknown(share.requested, unit)} of {or_unknown(share.allocatable, unit)}"
    drawn: Child = bar(share.ratio) if share.ratio is not None and share.allocatable else None
    return element(
        "tr", element("th", name, scope="row"), element("td", drawn), element("td", words)
    )


def bar(ratio: float) -> Html:
    """A drawn share; more than everything is drawn as everything, in another colour."""
    used = element(
        "rect",
        class_="over" if ratio > 1 else "used",
        width=f"{min(ratio, 1) * 100:.1f}",
        height=10,
    )
    whole = element("rect", class_="free", width=100, height=10)
    return element(
        "svg", whole, used, class_="bar", viewBox="0 0 100 10", preserveAspectRatio="none",
        role="img", aria_label=f"{ratio:.0%}",
    )  # fmt: skip


def _gpus(audit: Audit) -> list[Html]:
    report = audit.reports["gpu"]
    if not isinstance(report, GpuReport) or not report.nodes or report.requested is None:
        return []
    left = len(report.nodes) - _NODES
    drawn = gpu_map(replace(report, nodes=report.nodes[:_NODES]))
    more = element("p", f"and {left:,} more nodes", class_="dim") if left > 0 else None
    mapped = scrolling("GPU map", Html(drawn), class_="map")
    return [element("section", element("h2", "GPU map"), mapped, more)]


_WORDS = {
    ChangeKind.APPEARED: ("appeared", "bad"),
    ChangeKind.WORSENED: ("got worse", "bad"),
    ChangeKind.GONE: ("is gone", "good"),
}


def _changes(visit: Visit, history: Iterable[Change]) -> Html:
    shown = list(history)[:_CHANGES]
    if not shown:
        return element("p", "No finding came or went since the console first looked.", class_="dim")
    return element("ul", *(_change(visit.links, change) for change in shown), class_="plain")


def _change(links: Links, change: Change) -> Html:
    words, tone = _WORDS[change.what]
    return element(
        "li",
        element("time", f"{change.at:%H:%M:%S}", class_="dim"),
        " ",
        element("span", words, class_=f"badge {tone}"),
        " ",
        subject_link(links, change.finding.subject),
        f": {change.finding.rule}",
    )

"""Plan: a workload tried on the free capacity, each strategy drawn on the nodes. Pure."""

from __future__ import annotations

from kvestigate.console.frame import scrolling
from kvestigate.console.markup import Child, Html, element
from kvestigate.kube.requests import CPU, MEMORY
from kvestigate.planning.model import GPU
from kvestigate.planning.plan import NodeRow, Plan, Proposal
from kvestigate.planning.strategies import STRATEGIES
from kvestigate.render.human import cores, counted, size

_SQUARE = 12
_WIDEST = 16
"""Replicas of one node that are drawn; more are written as a number."""
_NODES = 200
"""Nodes that are drawn for each strategy."""


def answer(plan: Plan) -> Html:
    """The verdict, and what each strategy would do."""
    notes = [element("p", note, class_="dim") for note in plan.notes]
    if not plan.fits:
        ways = element("ul", *(element("li", way) for way in plan.ways_out))
        return element(
            "section",
            element("h2", f"{plan.fitting} of {counted(plan.replicas, 'replica')} fit"),
            element("div", element("p", plan.problem), class_="notice bad"),
            element("h3", "Ways out") if plan.ways_out else None,
            ways if plan.ways_out else None,
            *notes,
            _nodes(plan),
        )
    cards = [_proposal(plan, proposal) for proposal in plan.proposals]
    return element(
        "section",
        element("h2", f"All {counted(plan.replicas, 'replica')} fit", class_="good"),
        element("p", _need(plan), class_="dim"),
        *notes,
        element("div", *cards, class_="strategies"),
        _legend(),
        _nodes(plan),
    )


def _need(plan: Plan) -> str:
    parts = []
    for name, amount in plan.need.items():
        if name == CPU:
            parts.append(f"{cores(amount / 1000)} CPU")
        elif name == MEMORY:
            parts.append(size(amount))
        elif name != "pods":
            parts.append(f"{amount} {name}")
    return f"Each replica requests {', '.join(parts)}."


def _proposal(plan: Plan, proposal: Proposal) -> Html:
    summary = next((each.summary for each in STRATEGIES if each.name == proposal.strategy), "")
    rows = [
        _drawn(node, proposal.placement.get(node.name, 0))
        for node in plan.nodes[:_NODES]
        if node.slots or proposal.placement.get(node.name)
    ]
    return element(
        "article",
        element("h3", proposal.strategy),
        element("p", summary, class_="dim"),
        element("p", element("b", counted(proposal.nodes, "node")), " used"),
        element("table", element("tbody", *rows), class_="plain drawn"),
        class_="card",
    )


def _drawn(node: NodeRow, placed: int) -> Html:
    label = f"{counted(placed, 'replica')}, room for {node.slots - placed} more"
    return element(
        "tr",
        element("th", node.name, scope="row"),
        element("td", _squares(placed, node.slots, label)),
        element("td", str(placed) if placed else "", class_="number strong"),
    )


def _squares(placed: int, slots: int, label: str) -> Html:
    count = min(slots, _WIDEST)
    used = min(placed, count)
    squares = [
        element(
            "rect",
            class_="used" if index < used else "free",
            x=index * (_SQUARE + 2),
            width=_SQUARE,
            height=_SQUARE,
        )
        for index in range(count)
    ]
    more: Child = f" +{slots - count:,}" if slots > count else None
    drawing = element(
        "svg", *squares, width=max(count * (_SQUARE + 2), 1), height=_SQUARE, role="img",
        aria_label=label,
    )  # fmt: skip
    return element("span", drawing, element("small", more, class_="dim") if more else None)


def _legend() -> Html:
    def entry(kind: str, words: str) -> Html:
        square = element("rect", class_=kind, width=_SQUARE, height=_SQUARE)
        drawing = element("svg", square, width=_SQUARE, height=_SQUARE, aria_hidden="true")
        return element("span", drawing, f" {words}")

    return element(
        "p", entry("used", "replica placed"), entry("free", "room for one more"), class_="legend"
    )


def _nodes(plan: Plan) -> Html:
    titles = ("Free GPUs", "Free CPU", "Free memory", "Room")
    head = element(
        "tr",
        element("th", "Node", scope="col"),
        *(element("th", title, scope="col", class_="number") for title in titles),
        element("th", "Why not", scope="col"),
    )
    rows = [
        element(
            "tr",
            element("th", node.name, scope="row"),
            element("td", str(node.free.get(GPU, 0)), class_="number"),
            element("td", cores(node.free.get(CPU, 0) / 1000), class_="number"),
            element("td", size(node.free.get(MEMORY, 0)), class_="number"),
            element("td", str(node.slots), class_="number"),
            element("td", node.barred, class_="warn"),
        )
        for node in plan.nodes[:_NODES]
    ]
    left = len(plan.nodes) - len(rows)
    more = (
        element("p", f"{left:,} more nodes: see them with -o json", class_="dim") if left else None
    )
    return element(
        "details",
        element("summary", f"{counted(len(plan.nodes), 'node')} looked at"),
        scrolling("Nodes", element("table", element("thead", head), element("tbody", *rows))),
        more,
        open=not plan.fits,
    )  # fmt: skip

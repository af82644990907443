"""The page of one object: what it is, who owns it, its YAML, why it is ill, its logs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kvestigate.console.frame import Visit, copyable, notice
from kvestigate.console.markup import Html, element, joined
from kvestigate.inspection.any_object import without_secrets
from kvestigate.inspection.logs import Logs
from kvestigate.kube.resources import Resource
from kvestigate.render.encode import to_yaml

PARTS = (("", "Summary"), ("yaml", "YAML"), ("why", "Why"), ("logs", "Logs"))
LOG_KINDS = frozenset(
    ("pods", "deployments", "statefulsets", "daemonsets", "replicasets", "jobs", "services")
)
_TAIL = 500
"""Lines of each container that a page begins with."""


@dataclass(frozen=True, slots=True)
class Place:
    """Which object a page is about."""

    resource: Resource
    namespace: str
    name: str

    def link(self, visit: Visit, part: str = "", **parameters: str) -> str:
        return visit.links.object(
            self.resource.qualified, self.namespace, self.name, part, **parameters
        )

    def command(self, visit: Visit, program: str, verb: str, *options: str) -> str:
        """`kubectl --context demo -n shop get -o yaml deployments.apps web`"""
        named = ("--", self.name) if self.name.startswith("-") else (self.name,)
        words = (verb, *options, self.resource.qualified, *named)
        return visit.links.command(program, *words, namespace=self.namespace)


@dataclass(frozen=True, slots=True)
class Relative:
    """An object in the tree of owners."""

    kind: str
    """A word for its type that addresses understand: `replicasets.apps`."""
    namespace: str
    name: str
    state: str = ""
    owned: tuple[Relative, ...] = field(default=())
    left_out: int = 0


def tabs(visit: Visit, place: Place, current: str) -> Html:
    links = [
        element(
            "a",
            label,
            href=place.link(visit, part),
            aria_current="page" if part == current else None,
        )
        for part, label in PARTS
        if part != "logs" or place.resource.plural in LOG_KINDS
    ]
    return element("nav", *links, class_="tabs", aria_label="Parts of the object")


def tree(visit: Visit, place: Place, roots: Sequence[Relative]) -> Html | None:
    """The owners of the object above it, and what it owns below."""
    if not roots or (len(roots) == 1 and not roots[0].owned):
        return None
    branches = [_branch(visit, place, root) for root in roots]
    return element(
        "section",
        element("h2", "Owners and what is owned"),
        element("ul", *branches, class_="tree"),
    )


def _branch(visit: Visit, place: Place, relative: Relative) -> Html:
    own = (relative.namespace, relative.name) == (place.namespace, place.name)
    own = own and relative.kind == place.resource.qualified
    address = visit.links.object(relative.kind, relative.namespace, relative.name)
    words = f"{relative.kind.partition('.')[0]}/{relative.name}"
    name = element("b", words) if own else element("a", words, href=address)
    below = [_branch(visit, place, each) for each in relative.owned]
    if relative.left_out:
        below.append(element("li", f"and {relative.left_out:,} more", class_="dim"))
    return element(
        "li",
        name,
        element("span", f" {relative.state}", class_="dim") if relative.state else None,
        element("ul", *below) if below else None,
    )


def yaml_of(place: Place, body: dict[str, Any]) -> Html:
    shown = to_yaml(without_secrets(place.resource, body))
    return element("pre", element("code", shown), class_="source", tabindex="0")


def commands(visit: Visit, place: Place) -> Html:
    """The same on the command line."""
    return element(
        "section",
        element("h2", "On the command line"),
        copyable(place.command(visit, "kvestigate", "describe")),
        copyable(place.command(visit, "kubectl", "get", "-o", "yaml")),
    )


def log_lines(visit: Visit, place: Place, logs: Logs, query: str) -> Html:
    """The last lines, and where scripts run, those that follow."""
    words = query.lower()
    lines = [line for line in logs.lines if words in line.text.lower()]
    many = len({line.source for line in logs.lines}) > 1
    texts = [
        f"{f'{line.source.pod} {line.source.container}: ' if many else ''}{line.text}\n"
        for line in lines
    ]
    form = element(
        "form",
        element("input", type="hidden", name="context", value=visit.context),
        element("input", type="search", name="q", value=query, id="search", aria_label="Search",
                placeholder="Only lines with this text"),
        element("button", "Search"),
        method="get", action=place.link(visit, "logs").partition("?")[0], class_="filter",
    )  # fmt: skip
    follow = place.link(visit, "follow", **({"q": query} if query else {}))
    body = element("pre", *texts, class_="log", id="log", data_follow=follow, tabindex="0",
                   role="log")  # fmt: skip
    empty = notice("No line of the log has this text." if query else "The log is empty so far.")
    return joined(form, None if texts else empty, body)

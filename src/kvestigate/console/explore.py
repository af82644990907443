"""Explore: any kind as a table that is filtered, sorted and paged on the server. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from kvestigate.console.frame import Visit, failure, notice, scrolling
from kvestigate.console.markup import Child, Html, element, joined
from kvestigate.console.tables import Column, Found, LiveTable, Query, Row
from kvestigate.kube.resources import Resource
from kvestigate.render.human import age

COMMON = (
    "pods", "nodes", "deployments.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch",
    "services", "ingresses.networking.k8s.io", "persistentvolumeclaims", "configmaps", "secrets",
    "events", "namespaces",
)  # fmt: skip
"""Kinds that have a link of their own, before all others."""

_GOOD = frozenset(
    ("Running", "Ready", "Active", "Bound", "Succeeded", "Complete", "Completed", "True", "Normal")
)
_WARN = frozenset(
    ("Pending", "Terminating", "ContainerCreating", "PodInitializing", "Unknown", "Released",
     "SchedulingDisabled", "Suspended", "Warning", "SchedulingGated")
)  # fmt: skip
_BAD = frozenset(
    ("NotReady", "Failed", "Error", "Evicted", "Lost", "OOMKilled", "CrashLoopBackOff", "False",
     "ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError", "RunContainerError")
)  # fmt: skip
_NOTHING = ("", "<none>")


def kinds(visit: Visit, resources: Iterable[Resource]) -> Html:
    """All kinds of the cluster that can be listed, by group."""
    groups: dict[str, list[Resource]] = {}
    for resource in resources:
        groups.setdefault(resource.group or "core", []).append(resource)
    sections = [
        element(
            "section",
            element("h2", group),
            element("ul", *(_kind(visit, resource) for resource in members), class_="kinds"),
        )
        for group, members in groups.items()
    ]
    return element("div", *sections, class_="groups")


def _kind(visit: Visit, resource: Resource) -> Html:
    link = element("a", resource.kind, href=visit.links.kind(resource))
    return element("li", link, " ", element("span", resource.plural, class_="dim"))


def shortcuts(visit: Visit, current: str = "") -> Html:
    """Links to the kinds that people look at most."""
    links = [
        element(
            "a",
            name.partition(".")[0],
            href=visit.links.to("explore", name),
            aria_current="page" if name == current else None,
        )
        for name in COMMON
    ]
    return element("nav", *links, element("a", "all kinds", href=visit.links.to("explore")),
                   class_="shortcuts", aria_label="Kinds")  # fmt: skip


def filter_form(
    visit: Visit, resource: Resource, query: Query, names: Sequence[str], words: str
) -> Html:
    """The form above the table. It works by itself; with scripts, as one types."""
    address = visit.links.kind(resource)
    options = [element("option", "all namespaces", value="")]
    options += [
        element("option", name, value=name, selected=name == query.namespace) for name in names
    ]
    live = {
        "hx_get": f"/explore/{resource.qualified}", "hx_target": "#rows", "hx_select": "#rows",
        "hx_swap": "outerHTML", "hx_push_url": "true", "hx_sync": "this:replace",
    }  # fmt: skip
    chooser = (
        element("select", *options, name="ns", aria_label="Namespace", data_submit=True)
        if resource.namespaced
        else None
    )
    return element(
        "form",
        element("input", type="hidden", name="context", value=visit.context),
        element("input", type="hidden", name="sort", value=query.sort) if query.sort else None,
        element("input", type="hidden", name="desc", value="1") if query.descending else None,
        chooser,
        element(
            "input", type="search", name="q", value=words, id="search", autocomplete="off",
            placeholder="Filter: words, key=value of a label, -word to leave out",
            aria_label="Filter", **live, hx_include="closest form",
            hx_trigger="input changed delay:80ms, search",
        ),
        element("button", "Filter"),
        method="get", action=address.partition("?")[0], class_="filter",
    )  # fmt: skip


def rows(
    visit: Visit,
    table: LiveTable,
    query: Query,
    found: Found,
    parameters: Mapping[str, str],
    now: datetime,
) -> Html:
    """The table of one page, with its links to the others; what a filter replaces."""
    resource = table.resource
    here = visit.links.kind(resource, **parameters, page=found.page if found.page > 1 else None)
    live = {"hx_get": here, "hx_trigger": "live", "hx_select": "#rows", "hx_swap": "outerHTML"}
    stale = table.failure
    if stale is not None and not len(table):
        body: Child = failure(
            f"{resource.plural} cannot be listed: {stale.message}", stale.hint or ""
        )
    elif not found.matching:
        body = _empty(visit, resource, query, found)
    else:
        body = joined(
            failure(f"Not current: {stale.message}", stale.hint or "") if stale else None,
            _counts(found),
            _table(visit, table, query, found.rows, parameters, now),
            _pages(visit, resource, found, parameters),
        )
    return element("div", body, id="rows", **live)


def _empty(visit: Visit, resource: Resource, query: Query, found: Found) -> Html:
    if not found.total:
        return notice(f"This cluster has no {resource.plural}.")
    everything = element("a", "Show all", href=visit.links.kind(resource))
    return notice(
        f"None of {found.total:,} {resource.plural} matches the filter.", element("p", everything)
    )


def _counts(found: Found) -> Html:
    last = found.first + len(found.rows) - 1
    total = f" of {found.total:,}" if found.matching != found.total else ""
    words = f"{found.first:,} to {last:,} of {found.matching:,} matching{total}"
    if not total:
        words = f"{found.first:,} to {last:,} of {found.total:,}"
    return element("p", words, class_="dim counts", role="status")


def _table(
    visit: Visit,
    table: LiveTable,
    query: Query,
    shown: Sequence[Row],
    parameters: Mapping[str, str],
    now: datetime,
) -> Html:
    columns = list(_columns(table.columns, shown))
    namespaced = table.resource.namespaced
    head = [element("th", "Namespace", scope="col")] if namespaced else []
    head += [_heading(visit, table.resource, column, query, parameters) for _, column in columns]
    body = [_row(visit, table.resource, columns, row, now) for row in shown]
    return scrolling(
        table.resource.plural,
        element("table", element("thead", element("tr", *head)), element("tbody", *body)),
    )


def _columns(columns: Sequence[Column], shown: Sequence[Row]) -> Iterable[tuple[int, Column]]:
    """The columns of `kubectl get`, and those of `-o wide` in which something is."""
    for index, column in enumerate(columns):
        filled = any(len(row.cells) > index and row.cells[index] not in _NOTHING for row in shown)
        if column.priority == 0 or filled:
            yield index, column


def _heading(
    visit: Visit, resource: Resource, column: Column, query: Query, parameters: Mapping[str, str]
) -> Html:
    sorted_by = query.sort == column.name
    turned = {
        **parameters,
        "sort": column.name,
        "desc": "1" if sorted_by and not query.descending else "",
    }
    direction = ("descending" if query.descending else "ascending") if sorted_by else None
    mark = (" \u2193" if query.descending else " \u2191") if sorted_by else ""
    link = element("a", f"{column.name}{mark}", href=visit.links.kind(resource, **turned))
    return element("th", link, scope="col", aria_sort=direction, title=column.description or None)


def _row(
    visit: Visit,
    resource: Resource,
    columns: Sequence[tuple[int, Column]],
    row: Row,
    now: datetime,
) -> Html:
    metadata = row.metadata
    cells = []
    if resource.namespaced:
        namespace = visit.links.kind(resource, ns=metadata.namespace)
        cells.append(element("td", element("a", metadata.namespace, href=namespace, class_="dim")))
    for index, column in columns:
        words = row.cells[index] if index < len(row.cells) else ""
        if column.name == "Age" and metadata.creation_timestamp is not None:
            words = age((now - metadata.creation_timestamp).total_seconds())
        cells.append(_cell(visit, resource, column, words, row))
    return element("tr", *cells, data_row=f"{metadata.namespace}/{metadata.name}")


def _cell(visit: Visit, resource: Resource, column: Column, words: str, row: Row) -> Html:
    metadata = row.metadata
    if column.name == "Name":
        address = visit.links.object(resource.qualified, metadata.namespace, metadata.name)
        return element("td", element("a", words, href=address, class_="strong"))
    if column.name == "Node" and words not in _NOTHING:
        return element("td", element("a", words, href=visit.links.object("nodes", "", words)))
    number = "number" if column.type in ("integer", "number") else ""
    return element("td", words, class_=" ".join(filter(None, (tone_of(words), number))) or None)


def tone_of(words: str) -> str:
    """The tone of a status; empty for any other text."""
    parts = [part.removeprefix("Init:") for part in words.split(",")]
    for tone, known in (("bad", _BAD), ("warn", _WARN), ("good", _GOOD)):
        if any(part in known for part in parts):
            return tone
    return "dim" if words == "<none>" else ""


def _pages(
    visit: Visit, resource: Resource, found: Found, parameters: Mapping[str, str]
) -> Html | None:
    if found.pages == 1:
        return None

    def link(words: str, page: int, rel: str) -> Html:
        if not 1 <= page <= found.pages:
            return element("span", words, class_="dim")
        return element(
            "a", words, href=visit.links.kind(resource, **parameters, page=page), rel=rel
        )

    return element(
        "nav",
        link("First", 1, "first") if found.page > 1 else None,
        link("Previous", found.page - 1, "prev"),
        element("span", f"page {found.page:,} of {found.pages:,}"),
        link("Next", found.page + 1, "next"),
        link("Last", found.pages, "last") if found.page < found.pages else None,
        class_="pages",
        aria_label="Pages",
    )

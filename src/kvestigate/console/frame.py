"""What all pages share: head, navigation, choice of context, help for the keyboard. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvestigate.console.assets import STYLE, Asset
from kvestigate.console.assets import scripts as page_scripts
from kvestigate.console.links import Links
from kvestigate.console.markup import Child, Html, element, joined

SECTIONS = (
    ("", "Overview"),
    ("explore", "Explore"),
    ("plan", "Plan"),
    ("jobs", "Jobs"),
    ("hosts", "Hosts"),
    ("planes", "Planes"),
    ("operations", "Operations"),
)
"""Path -> name, in the order of the navigation; digits are their keys."""

_KEYS = (
    ("/", "search or filter"),
    ("j", "next row"),
    ("k", "previous row"),
    ("Enter", "open the row"),
    ("1 to 7", "open a section"),
    ("c", "copy the command of this page"),
    ("?", "show or hide this help"),
)


@dataclass(frozen=True, slots=True)
class Visit:
    """For whom and about which cluster a page is."""

    contexts: Sequence[str]
    """All that the kubeconfig has."""
    context: str
    form_token: str = ""
    allow_writes: bool = False

    @property
    def links(self) -> Links:
        return Links(self.context)


def page(
    visit: Visit,
    section: str,
    title: str,
    *children: Child,
    command: str = "",
    live: str = "",
    again: bool = False,
) -> Html:
    """A complete document. `live` is the address of events that say that the page is outdated.

    `again` lets the browser ask again soon, also without scripts: the page is not complete yet.
    """
    refresh = element("meta", http_equiv="refresh", content="2") if again else None
    heading = element("h1", title)
    top = element("div", heading, copyable(command) if command else None, class_="title")
    main = element("main", top, *children, id="main", tabindex="-1", data_live=live or None)
    skip = element("a", "Skip to the content", href="#main", class_="skip")
    body = joined(skip, _banner(visit, section), main, _help())
    name = f"{title} - {visit.context or 'kvestigate'}"
    return _document(name, body, head=refresh, scripts=True)


def bare_page(title: str, *children: Child, head: Html | None = None) -> Html:
    """A document without navigation, for those who are not signed in."""
    main = element("main", element("h1", title), *children, class_="bare")
    return _document(title, main, head=head)


def copyable(command: str) -> Html:
    """A command to type, with a button that copies it where scripts run."""
    shown = element("code", command, tabindex="0")
    button = element(
        "button", "Copy", type="button", data_copy=command, class_="quiet", hidden=True
    )
    return element("div", shown, button, class_="command")


def failure(words: str, hint: str = "") -> Html:
    """What went wrong, and what to do."""
    way_out = element("p", hint, class_="dim") if hint else None
    return element("div", element("p", words), way_out, class_="notice bad", role="alert")


def notice(words: str, *more: Child) -> Html:
    return element("div", element("p", words), *more, class_="notice", role="status")


def scrolling(label: str, *children: Child, class_: str = "scroll") -> Html:
    """Something wide, which those without a mouse can scroll, too."""
    return element("div", *children, class_=class_, tabindex="0", role="region", aria_label=label)


def hidden_fields(visit: Visit, *, posts: bool = False, token_name: str = "form-token") -> Html:
    """What every form carries: the context, and the form token if it changes something."""
    fields = [element("input", type="hidden", name="context", value=visit.context)]
    if posts:
        fields.append(element("input", type="hidden", name=token_name, value=visit.form_token))
    return joined(fields)


def _document(title: str, body: Html, *, head: Html | None = None, scripts: bool = False) -> Html:
    settings = '{"includeIndicatorStyles":false,"allowEval":false,"selfRequestsOnly":true}'
    return joined(
        Html("<!doctype html>\n"),
        element(
            "html",
            element(
                "head",
                element("meta", charset="utf-8"),
                element("meta", name="viewport", content="width=device-width, initial-scale=1"),
                element("meta", name="color-scheme", content="light dark"),
                element("meta", name="htmx-config", content=settings) if scripts else None,
                head,
                element("title", title),
                element("link", rel="stylesheet", href=STYLE.address),
                element("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
                [_script(asset) for asset in page_scripts()] if scripts else None,
            ),
            element("body", body),
            lang="en",
        ),
    )


def _script(asset: Asset) -> Html:
    return element("script", src=asset.address, integrity=asset.integrity or None, defer=True)


def _banner(visit: Visit, section: str) -> Html:
    name = element("a", "kvestigate", href=visit.links.to(""), class_="brand")
    entries = [
        element(
            "a",
            label,
            href=visit.links.to(path),
            aria_current="page" if path == section else None,
            data_key=index,
        )
        for index, (path, label) in enumerate(SECTIONS, 1)
    ]
    writes = element("span", "writes allowed", class_="badge warn") if visit.allow_writes else None
    return element(
        "header",
        name,
        element("nav", *entries, aria_label="Sections"),
        element("span", class_="grow"),
        writes,
        element("span", "", class_="badge", id="liveness", role="status"),
        _context_choice(visit),
        element("button", "?", type="button", class_="quiet", id="help-button", hidden=True,
                aria_label="Keyboard help"),
        class_="banner",
    )  # fmt: skip


def _context_choice(visit: Visit) -> Html:
    options = [
        element("option", name, value=name, selected=name == visit.context)
        for name in visit.contexts
    ]
    chooser = element("select", *options, name="context", id="context", data_submit=True)
    label = element("label", "Context", for_="context")
    go = element("button", "Go", class_="without-script")
    return element("form", label, chooser, go, method="get", action="/", class_="context")


def _help() -> Html:
    rows = [
        joined(element("dt", element("kbd", key)), element("dd", words)) for key, words in _KEYS
    ]
    close = element("form", element("button", "Close"), method="dialog")
    title = element("h2", "Keyboard", id="help-title")
    return element("dialog", title, element("dl", *rows), close, id="help",
                   aria_labelledby="help-title")  # fmt: skip

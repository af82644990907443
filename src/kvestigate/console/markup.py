"""HTML whose text is always escaped. Pure.

    element("a", "see ", pod.name, href=link, class_="pod")

A child that is a `str` is text, whoever wrote it; only an `Html` is markup, and only this module
and renderers of the project that escape their texts themselves make one. Attributes are escaped and
quoted. So an element cannot be ended, nor a script begun, by a name, an annotation or a log line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from kvestigate.render.blocks import Block, printable
from kvestigate.render.html import to_html

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
_ADDRESSES = frozenset({"href", "action", "formaction", "src", "hx-get", "hx-post"})


class Html:
    """A piece of markup that is safe to send."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


Child = Html | str | int | None
Value = str | int | bool | None


def element(name: str, /, *children: Child | Iterable[Child], **attributes: Value) -> Html:
    """An element. `class_` is `class`, `hx_get` is `hx-get`; None and False leave one out."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID and not children:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{_inner(children)}</{name}>")


def joined(*children: Child | Iterable[Child]) -> Html:
    """The children, one behind the other, without an element around them."""
    return Html(_inner(children))


def blocks(shown: Sequence[Block]) -> Html:
    """What a renderer of an operation shows: `to_html` escapes all of its text."""
    return Html(to_html(shown))


def _inner(children: Iterable[Child | Iterable[Child]]) -> str:
    return "".join(map(_child, children))


def _child(child: Child | Iterable[Child]) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child.text
    if isinstance(child, str | int):
        return escape(printable(str(child)))
    return _inner(child)


def _attribute(key: str, value: Value) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    if name in _ADDRESSES and not _is_local(str(value)):
        raise ValueError(f"{name}={value!r} leads out of the console")
    return f' {name}="{escape(printable(str(value)))}"'


def _is_local(address: str) -> bool:
    """`/explore?q=x` and `#help`; neither `javascript:` nor `//elsewhere`."""
    return address.startswith(("/", "?", "#")) and not address.startswith(("//", "/\\"))

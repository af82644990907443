"""No text of a cluster becomes markup, whatever it is and wherever it stands."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.console.markup import Html, element, joined

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</textarea><svg onload=alert(1)>",
    "javascript:alert(1)",
    "\x1b[31m\u202eevil",
)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def read(markup: Html) -> _Reader:
    reader = _Reader()
    reader.feed(str(markup))
    reader.close()
    return reader


@given(st.text() | st.sampled_from(HOSTILE), st.text() | st.sampled_from(HOSTILE))
def test_any_text_is_only_text(child: str, value: str) -> None:
    reader = read(element("p", child, element("b", "x", title=value), class_=value))
    assert [tag for tag, _ in reader.tags] == ["p", "b"]
    assert [sorted(attributes) for _, attributes in reader.tags] == [["class"], ["title"]]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_shown_is_what_was_written(text: str) -> None:
    visible = read(element("p", text)).text
    assert visible.isprintable()
    assert visible == text or not text.isprintable()


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "data:x",
        "",
    ],
)
@pytest.mark.parametrize("name", ["href", "src", "action", "formaction", "hx_get", "hx_post"])
def test_no_address_leads_out_of_the_console(name: str, address: str) -> None:
    with pytest.raises(ValueError, match="leads out"):
        element("a", "x", **{name: address})


def test_markup_is_kept_and_nothing_is_left_out() -> None:
    inner = element("b", "1 < 2")
    assert str(joined("a", None, inner, ["x", inner])) == ("a<b>1 &lt; 2</b>x<b>1 &lt; 2</b>")
    assert str(element("input", disabled=True, value=None, checked=False)) == "<input disabled>"

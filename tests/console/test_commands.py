"""Commands to copy: whatever a tenant or a link says, a shell sees one command in them."""

from __future__ import annotations

import html
import re
import shlex

import pytest

from kvestigate.console.links import Links
from tests.bed import Bed
from tests.console.conftest import Visitor

HOSTILE = ["$(touch pwned)", "x; touch pwned", "`touch pwned`", "a|b", "a b", "--server=evil", "'"]


def copied(page: str) -> list[list[str]]:
    """The words of each command of a page, as a shell sees them."""
    return [
        list(shlex.shlex(html.unescape(command), posix=True, punctuation_chars=True))
        for command in re.findall(r'data-copy="([^"]*)"', page)
    ]


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_name_stays_a_name(bed: Bed, visitor: Visitor, name: str) -> None:
    """Names of roles may have nearly any characters."""
    await bed.create("clusterroles", {"metadata": {"name": name}, "rules": []})
    for part in ("", "/yaml", "/why"):
        page = await visitor.get(f"/object/clusterroles/-/{name}{part}")
        commands = copied(page)
        assert commands
        for words in commands:
            assert words[-1] == name
            assert words[-2] == "--" or not name.startswith("-")


@pytest.mark.parametrize("text", HOSTILE)
async def test_a_link_puts_nothing_into_commands(visitor: Visitor, text: str) -> None:
    [words] = copied(await visitor.get("/explore/pods", ns=text))
    assert words == ["kubectl", "--context", "test", "-n", text, "get", "pods"]
    for page in (
        await visitor.get(f"/object/namespaces/{text}/default/yaml"),
        await visitor.get("/run/describe", kind=text, name=text, namespace=text),
    ):
        for words in copied(page):
            assert words[words.index("-n") + 1] == text


@pytest.mark.parametrize("context", HOSTILE)
def test_a_context_stays_a_context(context: str) -> None:
    words = shlex.split(Links(context).command("kubectl", "api-resources"))
    assert words == ["kubectl", "--context", context, "api-resources"]

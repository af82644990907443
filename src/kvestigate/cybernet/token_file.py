"""`auth.tokens` of a cyberspace's file, changed in place: all other text stays as it is. Pure.

People write comments into these files. So only the lines of the list are replaced, and what comes
of it is read again before it counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from kvestigate.cybernet.spec import TokenSpec
from kvestigate.errors import InputError
from kvestigate.kube import times


def with_tokens(text: str, tokens: Sequence[TokenSpec]) -> str:
    """The text of a cyberspace with other tokens; InputError if they cannot be put there."""
    top = yaml.compose(text, Loader=yaml.SafeLoader)
    auth = _member(top, "auth")
    if auth is None:
        return f"{text.rstrip()}\nauth:\n  tokens:{_listed(tokens, 4)}\n"
    listed = _member(auth, "tokens")
    if listed is None:
        raise InputError(
            "auth: has no tokens", hint="write auth: {tokens: []}, then the tokens can be added"
        )
    before, after = text[: listed.start_mark.index], text[_end(listed) :]
    column = _column(auth)
    return f"{before.rstrip()}{_listed(tokens, column)}{after}"


def _member(node: yaml.Node | None, name: str) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == name:
                found: yaml.Node = value
                return found
    return None


def _end(node: yaml.Node) -> int:
    """Where a value ends: what PyYAML calls the end of a block is the beginning of the next."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    end: int = node.end_mark.index
    return end


def _column(auth: yaml.Node) -> int:
    """How far the items are indented: as far as the member `tokens`, and a step."""
    if isinstance(auth, yaml.MappingNode) and auth.flow_style:
        return -1
    return int(auth.start_mark.column) + 2


def _listed(tokens: Sequence[TokenSpec], column: int) -> str:
    entries = [_written(token) for token in tokens]
    if not entries or column < 0:
        return f" [{', '.join(entries)}]"
    return "".join(f"\n{' ' * column}- {entry}" for entry in entries)


def _written(token: TokenSpec) -> str:
    """In one line. Identities and tags are letters, digits and few signs, or are quoted."""
    fields = [f'identity: "{token.identity}"', f'sha256: "{token.sha256}"']
    if token.tags:
        fields.append(f"tags: [{', '.join(map(_quoted, token.tags))}]")
    if token.expires is not None:
        fields.append(f'expires: "{times.text(token.expires)}"')
    return f"{{{', '.join(fields)}}}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

"""Results for programs: JSON, YAML and NDJSON from the same values that the tables show."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from kvestigate.kube.yaml_documents import is_text

if TYPE_CHECKING:
    import yaml


def to_json(value: object) -> bytes:
    """`value` (a dataclass, a Struct, or plain data), two spaces a level, newline at the end."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def to_ndjson(values: Iterable[object]) -> Iterable[bytes]:
    """One line a value, as the values come."""
    encoder = msgspec.json.Encoder()
    return (encoder.encode(value) + b"\n" for value in values)


def to_yaml(value: object) -> str:
    """`value` in the style of `kubectl -o yaml`: block style, lists flush with their key."""
    import yaml

    text: str = yaml.dump(
        msgspec.to_builtins(value),
        Dumper=_dumper(),
        sort_keys=False,
        default_flow_style=False,
        allow_unicode=True,
        # A folded line would no longer be found by someone who greps for it.
        width=2**31,
    )
    return text


@cache
def _dumper() -> type[yaml.SafeDumper]:
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            """Anchors are legal YAML that no reader of manifests expects."""
            return True

    def represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        style = "|" if "\n" in text else None
        if not is_text(text):
            # kubectl takes more words for booleans and numbers than PyYAML knows of: y, 1e3, 0o7.
            style = "'"
        if not text.replace("\n", "").isprintable():
            # Other kinds of line ends and control characters survive only as escapes.
            style = '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, represent_text)
    return Dumper

"""A request body in YAML: parsed beside the loop, as that takes a hundred times as long as JSON.

Programs send JSON, also where they call it YAML (server-side apply). What people write by hand is
small, so a body with very many values is refused.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kvestigate.errors import InputError

MOST_VALUES = 50_000
"""Values and brackets of a body."""


class ParsedYaml(NamedTuple):
    value: Any = None
    repeated: tuple[str, ...] = ()
    """Keys given twice, of which the last counts."""
    problem: str = ""
    """Why the body is not YAML."""


def parse_yaml(data: bytes) -> ParsedYaml:
    """The first document of a body. Pure."""
    from kvestigate.kube.yaml_documents import complaint, load

    try:
        documents = load(data.decode(), source="body", lenient=True, most=MOST_VALUES)
    except UnicodeDecodeError as error:
        return ParsedYaml(problem=f"yaml: {error}")
    except InputError as error:
        return ParsedYaml(problem=complaint(error))
    if not documents:
        return ParsedYaml()
    return ParsedYaml(documents[0].value, documents[0].repeated)

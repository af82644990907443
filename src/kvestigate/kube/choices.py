"""What fields of built-in types may be and are by default, as OpenAPI documents say it.

The table beside this file was written by an API server (`tools/choices.py`); only who serves such
documents reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

Said = Mapping[str, Mapping[str, Any]]
"""By the path of a field (`ports[].protocol`, `data{}`; empty for the definition itself): the
`enum`, `default` and `x-kubernetes-unions` of its schema."""


@cache
def _table() -> dict[str, dict[str, dict[str, Any]]]:
    data = Path(__file__).with_name("choices.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, dict[str, dict[str, Any]]])


def of(definition: str) -> Said:
    return _table().get(definition, {})

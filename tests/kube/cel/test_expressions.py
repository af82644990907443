"""Expressions give what kube-apiserver 1.36 gives: `expressions.json` holds its answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvestigate.kube import cel
from kvestigate.kube.cel import schema

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "expressions.json").read_text())
TYPE = schema.type_of(RECORDED["schema"])
CONVERT = schema.converter(RECORDED["schema"])


@pytest.mark.parametrize(("source", "value"), RECORDED["values"].items())
def test_values(source: str, value: str) -> None:
    assert TYPE is not None
    assert CONVERT is not None
    assert cel.compiled(source, {"self": TYPE}).run(CONVERT(RECORDED["self"])) == value


@pytest.mark.parametrize(("source", "told"), RECORDED["refused"].items())
def test_what_is_refused(source: str, told: str) -> None:
    assert TYPE is not None
    with pytest.raises(cel.CompileError) as raised:
        cel.compiled(source, {"self": TYPE})
    assert str(raised.value) == told

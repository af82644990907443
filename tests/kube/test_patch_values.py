"""Values in the words of the server."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.kube.patches import values


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"b": [1, None], "a": {"c": True}}, "map[a:map[c:true] b:[1 <nil>]]"),
        ({}, "map[]"),
        (1.5, "1.5"),
    ],
)
def test_shown_as_go_prints_it(value: Any, shown: str) -> None:
    assert values.shown(value) == shown

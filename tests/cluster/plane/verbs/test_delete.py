"""Deletions without effect: where the wish has to be written."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.plane.conftest import Api

MAPS = "/api/v1/namespaces/default/configmaps"
EVERYTHING: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}


@pytest.mark.parametrize(
    ("query", "options", "stays"),
    [
        ("", None, False),
        ("?dryRun=All", None, True),
        ("", EVERYTHING | {"dryRun": ["All"]}, True),
        ("?dryRun=All", EVERYTHING, False),  # as on the real server: the body is all it reads
    ],
)
async def test_a_dry_run_is_asked_for_in_the_body_or_else_in_the_query(
    api: Api, query: str, options: dict[str, Any] | None, stays: bool
) -> None:
    await api.post(MAPS, {"metadata": {"name": "settings"}})
    assert (await api.delete(f"{MAPS}/settings{query}", options)).status == 200
    assert ((await api.get(f"{MAPS}/settings")).status == 200) is stays

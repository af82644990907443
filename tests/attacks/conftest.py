"""A plane in process, as its tenants reach it. At the end it is said how much was tried."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.plane.conftest import Api, api

__all__ = ["Api", "api"]

HERE = "tests/attacks/"
RANDOM = "random_attempts"
"""The property with which a test says how many attempts it makes up itself."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the attack cases of this run: one case is one test, or one row of a test's table."""
    stats = terminalreporter.stats
    ran = [*_reports(stats, "passed"), *_reports(stats, "failed"), *_reports(stats, "error")]
    skipped = len({*_reports(stats, "skipped"), *_reports(stats, "deselected")})
    generated = sum("[" in nodeid for nodeid in ran)
    made_up = sum(
        int(value)
        for report in stats.get("passed", [])
        for name, value in report.user_properties
        if name == RANDOM
    )
    if ran:
        terminalreporter.write_line(
            f"attack cases: {len(ran) + skipped} exist, {len(ran)} ran "
            f"({generated} generated from tables, {len(ran) - generated} listed), "
            f"{len(_reports(stats, 'failed'))} got through; {made_up} random attempts besides"
        )


def _reports(stats: dict[str, list[Any]], outcome: str) -> list[str]:
    return list(dict.fromkeys(_of_attacks(stats.get(outcome, []))))


def _of_attacks(reports: list[Any]) -> Iterator[str]:
    return (report.nodeid for report in reports if report.nodeid.startswith(HERE))

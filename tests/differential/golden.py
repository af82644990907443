"""The recorded answers of the real server: one JSON file a topic, one line a script."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent / "golden"
GAPS = Path(__file__).parent / "known_gaps.txt"


@cache
def read(topic: str) -> dict[str, list[dict[str, Any]]]:
    """Script name -> exchanges."""
    path = GOLDEN / f"{topic}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def write(topic: str, answers: dict[str, list[dict[str, Any]]]) -> None:
    lines = [
        f"{json.dumps(name)}:{json.dumps(exchanges, separators=(',', ':'), ensure_ascii=False)}"
        for name, exchanges in answers.items()
    ]
    GOLDEN.mkdir(exist_ok=True)
    (GOLDEN / f"{topic}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    read.cache_clear()


def gap(script_id: str, step: int) -> str:
    """How a step of a script is called in the list of known gaps."""
    return f"{script_id} step {step}"


def gaps() -> dict[str, str]:
    """Steps that planes do not answer like the real server: `topic/script step 3` -> why."""
    if not GAPS.exists():
        return {}
    lines = [line for line in GAPS.read_text().splitlines() if line and not line.startswith("#")]
    return {name.strip(): why.strip() for name, _, why in (line.partition(": ") for line in lines)}


def write_gaps(found: dict[str, str]) -> None:
    head = (
        "# Steps that a plane answers differently from the real server: topic/script step: why.\n"
        "# The other steps of these scripts are compared. A listed step that is answered alike\n"
        "# fails the suite: take it off the list then.\n"
    )
    GAPS.write_text(head + "".join(f"{name}: {why}\n" for name, why in sorted(found.items())))

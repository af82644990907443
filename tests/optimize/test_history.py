"""Since when GPUs are idle, from looks that were kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kvestigate.errors import InputError
from kvestigate.optimize import history
from kvestigate.optimize.history import Look, Use, append, idle_since, length, load
from kvestigate.snapshot.ledger.holdings import Holding
from kvestigate.snapshot.model_servers import Serving

START = datetime(2026, 11, 17, 8, 12, tzinfo=UTC)


def at(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


def looks(*uses: Use | None) -> list[Look]:
    return [
        Look(at(minute), {} if use is None else {"ml/p": use}) for minute, use in enumerate(uses)
    ]


IDLE, BUSY, UNKNOWN = Use(0.0), Use(80.0), Use()


@pytest.mark.parametrize(
    ("uses", "minute"),
    [
        ((BUSY, IDLE, IDLE), 1),
        ((IDLE, IDLE), 0),
        ((IDLE, BUSY), None),
        ((IDLE, None), None),
        ((IDLE, UNKNOWN, IDLE), 2),
        ((), None),
        # A counter of requests tells what happened between two looks.
        ((Use(0.0, 5), Use(0.0, 6), Use(0.0, 6)), 1),
        ((Use(None, 6, 0), Use(None, 6, 0)), 0),
        ((Use(0.0, 6, 0), Use(0.0, 6, 1)), None),
    ],
)
def test_since_when_a_pod_does_nothing(uses: tuple[Use | None, ...], minute: int | None) -> None:
    expected = None if minute is None else at(minute)
    assert idle_since(looks(*uses), "ml/p") == expected


def test_looks_come_back_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "gpus.jsonl"
    given = looks(IDLE, BUSY, Use(None, 3, 0))
    lines = 0
    for each in given:
        lines = append(path, each, lines)
    assert (load(path), length(path), lines) == (given, 3, 3)
    path.write_bytes(b"noise\n" + path.read_bytes() + b'{"at": "2026')
    assert load(path) == given


def test_a_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_LOOKS", 10)
    path = tmp_path / "gpus.jsonl"
    lines = 0
    for minute in range(35):
        lines = append(path, Look(at(minute), {"ml/p": IDLE}), lines)
        assert lines == length(path) <= 10
    assert load(path)[-1].at == at(34)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.jsonl: cannot be read"):
        load(tmp_path / "nothing.jsonl")


def held(utilization: float | None, work: Serving | None = None) -> Holding:
    return Holding(
        "ml",
        "p",
        "Pod p",
        "n",
        "H100",
        {"GPU": 1},
        1.0,
        None,
        utilization=utilization,
        serving=work,
    )


@pytest.mark.parametrize(
    ("one", "idle"),
    [
        (held(0.0), True),
        (held(50.0), False),
        (held(None), None),
        (held(0.0, Serving("vLLM", 1, 0, 5)), False),
        (held(30.0, Serving("vLLM", 0, 0, 0)), True),
        (held(None, Serving("vLLM", 0, 0, 0)), True),
        (held(None, Serving("vLLM", 0, 0, 9)), None),
    ],
)
def test_a_model_server_knows_best_whether_it_works(one: Holding, idle: bool | None) -> None:
    assert one.idle is idle

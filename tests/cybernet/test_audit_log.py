"""Every request leaves one record without secrets, or is not carried out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvestigate.cybernet.audit_log import AuditLog, Record, masked
from kvestigate.cybernet.quotas import Usage
from kvestigate.cybernet.refusals import Unavailable
from kvestigate.cybernet.spec import AuditSpec
from kvestigate.errors import UsageError
from kvestigate.operation import NOTHING

RECORD = Record(
    "2026-01-01T00:00:00.000000Z",
    "ada",
    ("gpu",),
    "127.0.0.1:5",
    "report.run",
    {"name": "nodes"},
    NOTHING,
    "allow",
    "",
    "ok",
    1.5,
    Usage(1, 2, 3),
)


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_a_record_is_one_line_of_json(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(AuditSpec(str(path)))
    await log.ready()
    await log.write(RECORD)
    await log.write(replace(RECORD, reason="line\nbreak"))
    log.close()
    first, second = records(path)
    assert first["quota"] == {"workspaces": 1, "gpus": 2, "memory": 3}
    assert set(first) == {"timestamp", "identity", "remote", "operation", "parameters"} | {
        "decision",
        "reason",
        "tags",
        "touched",
        "outcome",
        "duration_ms",
        "quota",
    }
    assert second["reason"] == "line\nbreak"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("include", "count"), [(True, 2), (False, 1)])
async def test_denials_are_recorded_if_they_are_wanted(
    include: bool, count: int, tmp_path: Path
) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(AuditSpec(str(path), include_denials=include))
    await log.write(RECORD)
    await log.write(replace(RECORD, decision="deny"))
    log.close()
    assert len(records(path)) == count


async def test_records_of_an_earlier_gateway_stay(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    for _ in range(2):
        log = AuditLog(AuditSpec(str(path)))
        await log.write(RECORD)
        log.close()
    assert len(records(path)) == 2


async def test_a_file_that_was_moved_away_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(AuditSpec(str(path)))
    await log.write(RECORD)
    path.rename(tmp_path / "audit.1.jsonl")
    await log.ready()
    await log.write(RECORD)
    log.close()
    assert len(records(path)) == len(records(tmp_path / "audit.1.jsonl")) == 1


async def test_a_log_without_its_directory_is_not_ready(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    directory.mkdir()
    log = AuditLog(AuditSpec(str(directory / "audit.jsonl")))
    (directory / "audit.jsonl").unlink()
    directory.rmdir()
    with pytest.raises(Unavailable):
        await log.ready()
    with pytest.raises(Unavailable):
        await log.write(RECORD)
    directory.mkdir()
    await log.ready()
    log.close()


async def test_a_disk_that_is_full_is_told() -> None:
    log = AuditLog(AuditSpec("/dev/full"))
    with pytest.raises(Unavailable, match="No space left"):
        await log.write(RECORD)
    log.close()


def test_a_log_that_cannot_be_begun_is_a_mistake_in_the_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"audit\.path: .* No such file"):
        AuditLog(AuditSpec(str(tmp_path / "no" / "audit.jsonl")))


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"token": "t"}, {"token": "***"}),
        ({"env": {"DB_PASSWORD": "p", "PORT": "1"}}, {"env": {"DB_PASSWORD": "***", "PORT": "1"}}),
        ({"a": [{"my_secret": {"deep": 1}}]}, {"a": [{"my_secret": "***"}]}),
        (["run", "--token", "t", "x"], ["run", "--token", "***", "x"]),
        (["run", "--token=t", "x"], ["run", "--token=***", "x"]),
        (["API_KEY=abc", "ls"], ["API_KEY=***", "ls"]),
        ({"name": "nodes", "n": 1, "ok": True, "no": None},) * 2,
        ({"archive": "A" * 5000}, {"archive": "A" * 64 + "... (5000 characters)"}),
        (None, None),
    ],
)
def test_what_is_recorded_of_parameters(value: Any, kept: Any) -> None:
    assert masked(value) == kept


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
few = settings(max_examples=50)


@few
@given(plain, st.sampled_from(["token", "password", "client_secret", "Authorization-Token"]))
def test_no_secret_is_recorded_however_deep_it_is(rest: Any, key: str) -> None:
    value = {"rest": rest, "inner": [{"x": {key: "s3cr3t-value"}}]}
    assert "s3cr3t-value" not in json.dumps(masked(value))


@few
@given(plain)
def test_any_parameters_can_be_recorded(value: Any) -> None:
    json.dumps(masked(value))

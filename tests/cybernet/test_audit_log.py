"""Every request leaves one record without secrets, or is not carried out."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvestigate.cybernet.audit_log import AuditLog, Record, Stage, masked
from kvestigate.cybernet.quotas import Usage
from kvestigate.cybernet.refusals import Unavailable
from kvestigate.cybernet.spec import AuditSpec
from kvestigate.errors import UsageError
from kvestigate.operation import NOTHING

RECORD = Record(
    "0123456789abcdef",
    Stage.OUTCOME,
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
    await log.write(RECORD)
    await log.write(replace(RECORD, reason="line\nbreak"))
    log.close()
    first, second = records(path)
    assert first["quota"] == {"workspaces": 1, "gpus": 2, "memory": 3}
    fields = "id stage timestamp identity tags remote operation parameters touched decision reason"
    assert set(first) == {*fields.split(), "outcome", "duration_ms", "quota", "count"}
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
    await log.write(RECORD)
    log.close()
    assert len(records(path)) == len(records(tmp_path / "audit.1.jsonl")) == 1


async def test_a_log_without_its_directory_takes_nothing_until_it_is_back(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    directory.mkdir()
    log = AuditLog(AuditSpec(str(directory / "audit.jsonl")))
    (directory / "audit.jsonl").unlink()
    directory.rmdir()
    with pytest.raises(Unavailable):
        await log.write(RECORD)
    directory.mkdir()
    await log.write(RECORD)
    log.close()
    assert len(records(directory / "audit.jsonl")) == 1


FULL = """
import asyncio, resource, sys
from dataclasses import replace
from kvestigate.cybernet.audit_log import AuditLog
from kvestigate.cybernet.refusals import Unavailable
from kvestigate.cybernet.spec import AuditSpec
from tests.cybernet.test_audit_log import RECORD

async def main():
    log = AuditLog(AuditSpec(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
    written = 0
    try:
        while True:
            await log.write(RECORD)
            written += 1
    except Unavailable as refusal:
        print(written, refusal.message)
    log.close()

asyncio.run(main())
"""


def test_a_file_that_takes_no_more_is_told_and_keeps_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True
    )
    count, _, message = done.stdout.partition(" ")
    assert message.startswith("the audit log cannot be written: ")
    assert len(records(path)) == int(count) > 0


@pytest.mark.parametrize("tail", [b'{"half": ', b"\0" * 5000, b"x" * 200_000])
async def test_a_half_line_of_a_crash_does_not_spoil_the_next(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(AuditSpec(str(path)))
    await log.write(RECORD)
    log.close()
    with path.open("ab") as file:
        file.write(tail)
    log = AuditLog(AuditSpec(str(path)))
    await log.write(RECORD)
    log.close()
    assert len(records(path)) == 2


async def test_a_file_that_was_open_to_all_is_so_no_more(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.touch()
    path.chmod(0o666)
    AuditLog(AuditSpec(str(path))).close()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link", "pipe", "device"])
async def test_only_a_file_of_its_own_is_written_to(tmp_path: Path, kind: str) -> None:
    other, path = tmp_path / "other", tmp_path / "audit.jsonl"
    other.write_text("untouched")
    match kind:
        case "link":
            path.symlink_to(other)
        case "dangling link":
            path.symlink_to(tmp_path / "new")
        case "hard link":
            os.link(other, path)
        case "pipe":
            os.mkfifo(path)
        case "device":
            path = Path("/dev/null")
    with pytest.raises(UsageError, match=r"audit\.path"):
        AuditLog(AuditSpec(str(path)))
    assert (other.read_text(), (tmp_path / "new").exists()) == ("untouched", False)


async def test_a_link_that_takes_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    other, path = tmp_path / "other", tmp_path / "audit.jsonl"
    other.write_text("")
    log = AuditLog(AuditSpec(str(path)))
    await log.write(RECORD)
    path.unlink()
    path.symlink_to(other)
    with pytest.raises(Unavailable):
        await log.write(RECORD)
    log.close()
    assert other.read_text() == ""


async def test_two_gateways_may_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    logs = [AuditLog(AuditSpec(str(path))) for _ in range(2)]
    await asyncio.gather(*(log.write(RECORD) for log in logs for _ in range(200)))
    for log in logs:
        log.close()
    assert len(records(path)) == 400


async def test_a_denial_whose_intent_is_written_is_written_too(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(AuditSpec(str(path), include_denials=False))
    await log.write(replace(RECORD, stage=Stage.INTENT))
    await log.write(replace(RECORD, decision="deny"))
    await log.write(replace(RECORD, id="another", decision="deny"))
    log.close()
    assert [it["stage"] for it in records(path)] == ["intent", "outcome"]


def test_a_log_that_cannot_be_begun_is_a_mistake_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"audit\.path: .* (?:Not a directory|File exists)"):
        AuditLog(AuditSpec(str(tmp_path / "file" / "audit.jsonl")))


def test_the_directory_of_the_log_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    log = AuditLog(AuditSpec(str(tmp_path / "var" / "log" / "audit.jsonl")))
    log.close()
    assert (tmp_path / "var" / "log" / "audit.jsonl").exists()
    assert (tmp_path / "var" / "log").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"token": "t"}, {"token": "***"}),
        ({"env": {"DB_PASSWORD": "p", "PORT": "1"}}, {"env": {"DB_PASSWORD": "***", "PORT": "1"}}),
        ({"a": [{"my_secret": {"deep": 1}}]}, {"a": [{"my_secret": "***"}]}),
        (["run", "--token", "t", "x"], ["run", "--token", "***", "x"]),
        (["run", "--token=t", "x"], ["run", "--token=***", "x"]),
        (["API_KEY=abc", "ls"], ["API_KEY=***", "ls"]),
        ([{"name": "DB_PASSWORD", "value": "p"}], [{"name": "DB_PASSWORD", "value": "***"}]),
        ({"--token=abc": 1}, {"--token=***": "***"}),
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


def test_large_parameters_make_no_large_record() -> None:
    value = {f"{it}": ["x" * 1000] * 300 for it in range(300)}
    assert len(json.dumps(masked(value))) < 20_000
    assert len(json.dumps(masked([[["x" * 10] * 300] * 300] * 300))) < 40_000


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

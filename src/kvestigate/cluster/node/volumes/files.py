"""The files of volumes that are made from the API, and how they are replaced.

They are written the kubelet's way: into a new directory, which the link `..data` then names. A
reader sees all of the old state or all of the new one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kvestigate.cluster.node.hosts import ownership
from kvestigate.cluster.node.spec.environment import (
    Data,
    MissingReference,
    Surroundings,
    field_value,
    resource_value,
)
from kvestigate.cluster.node.spec.pod import DownwardSource, KeyToPath, Pod


@dataclass(frozen=True, slots=True)
class File:
    data: bytes
    mode: int
    user: int | None = None


def chosen(
    data: Data | None, items: tuple[KeyToPath, ...], mode: int, optional: bool
) -> dict[str, File]:
    """All keys, or those that `items` name, at their paths."""
    if data is None:
        return {}
    if not items:
        return {key: File(value, mode) for key, value in data.items()}
    files: dict[str, File] = {}
    for item in items:
        if item.key in data:
            files[item.path] = File(data[item.key], mode if item.mode is None else item.mode)
        elif not optional:
            raise MissingReference(f"references non-existent config key: {item.key}")
    return files


def downward(pod: Pod, source: DownwardSource, mode: int, around: Surroundings) -> dict[str, File]:
    files: dict[str, File] = {}
    for item in source.items:
        if item.field_ref is not None:
            text = field_value(pod, item.field_ref.field_path, around)
        elif item.resource_field_ref is not None:
            text = resource_value(pod, None, item.resource_field_ref, around)
        else:
            continue
        files[item.path] = File(text.encode(), mode if item.mode is None else item.mode)
    return files


def write_atomically(
    directory: Path, files: Mapping[str, File], now: float, group: int | None = None
) -> None:
    """Make `directory` show exactly `files`; nothing is written if it does already.

    All of them can be read by `group`, whatever their modes.
    """
    directory.mkdir(parents=True, exist_ok=True)
    link = directory / "..data"
    if link.exists() and _shows(link, files):
        return
    fresh = (
        directory / f"..{datetime.fromtimestamp(now, UTC):%Y_%m_%d_%H_%M_%S}.{os.urandom(4).hex()}"
    )
    fresh.mkdir()
    for path, file in files.items():
        target = fresh / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.data)
        target.chmod(file.mode)
        if file.user is not None and os.geteuid() == 0:
            os.chown(target, file.user, -1)
    if group is not None:
        ownership.give(directory, group, read_only=True)
    before = link.readlink() if link.is_symlink() else None
    swap = directory / "..data_tmp"
    swap.unlink(missing_ok=True)
    swap.symlink_to(fresh.name)
    swap.replace(link)
    visible = {Path(path).parts[0] for path in files}
    for name in visible:
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(Path("..data") / name)
    for entry in directory.iterdir():
        if entry.is_symlink() and not entry.name.startswith("..") and entry.name not in visible:
            entry.unlink()
    if before is not None:
        shutil.rmtree(directory / before, ignore_errors=True)


def _shows(data: Path, files: Mapping[str, File]) -> bool:
    paths = {str(path.relative_to(data)) for path in data.rglob("*") if path.is_file()}
    return paths == set(files) and all(
        (data / path).read_bytes() == file.data for path, file in files.items()
    )

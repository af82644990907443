"""All that can be known about kubeconfigs without a network: the files, and what they point to."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kvestigate.client.kubeconfig import Cluster, User
from kvestigate.client.usable import check_cluster, check_user
from kvestigate.errors import ConfigError
from kvestigate.kubeconfigs.entries import Entries, Problem


@dataclass(slots=True)
class Look:
    """What was seen."""

    files: tuple[Path, ...]
    """Those that are there."""
    entries: Entries
    modes: Mapping[str, int] = field(default_factory=dict)
    """Path -> permission bits, of kubeconfigs, keys and tokens."""
    contents: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Path -> bytes, of the certificates, keys and tokens that could be read."""
    unusable: tuple[Problem, ...] = ()
    """What kubectl and we would refuse."""
    missing_plugins: frozenset[str] = frozenset()
    """Commands that are not found."""


def look(paths: Iterable[Path], environ: Mapping[str, str]) -> Look:
    """ConfigError if none of the files is there."""
    entries = Entries()
    files = []
    wanted = list(dict.fromkeys(paths))
    for path in wanted:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            problem = ConfigError(f"{path}: cannot be read: {error.strerror}")
            entries.problems.append(Problem(str(path), str(path), problem))
        else:
            entries.read(path, data)
        files.append(path)
    if not files:
        names = ", ".join(map(str, wanted)) or "none is configured"
        raise ConfigError(
            f"no kubeconfig file exists: {names}",
            hint="give --kubeconfig PATH",
        )
    referenced = sorted(set(_referenced(entries)))
    secret = sorted({*map(str, files), *_secret_files(entries)})
    return Look(
        files=tuple(files),
        entries=entries,
        modes={path: mode for path in secret if (mode := _mode(path)) is not None},
        contents={path: content for path in referenced if (content := _content(path)) is not None},
        unusable=tuple(_unusable(entries)),
        missing_plugins=frozenset(_missing(entries, environ)),
    )


def _clusters(entries: Entries) -> Iterator[Cluster]:
    return (entry.value for entry in entries.clusters if entry.value is not None)


def _users(entries: Entries) -> Iterator[User]:
    return (entry.value for entry in entries.users if entry.value is not None)


def _referenced(entries: Entries) -> Iterator[str]:
    for cluster in _clusters(entries):
        yield cluster.certificate_authority
    for user in _users(entries):
        yield from (user.client_certificate, user.client_key, user.token_file)


def _secret_files(entries: Entries) -> Iterator[str]:
    for user in _users(entries):
        yield from (path for path in (user.client_key, user.token_file) if path)


def _mode(path: str) -> int | None:
    try:
        return stat.S_IMODE(Path(path).stat().st_mode)
    except OSError:
        return None


def _content(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes() if path else None
    except OSError:
        return None


def _unusable(entries: Entries) -> Iterator[Problem]:
    for cluster in entries.clusters:
        if cluster.value is not None:
            for error in check_cluster(cluster.value):
                yield Problem(cluster.label, cluster.section.where(), error)
    for user in entries.users:
        if user.value is not None:
            for error in check_user(user.value):
                yield Problem(user.label, user.section.where(), error)


def _missing(entries: Entries, environ: Mapping[str, str]) -> Iterator[str]:
    for user in _users(entries):
        command = user.exec.command if user.exec is not None else ""
        if command and shutil.which(command, path=environ.get("PATH", os.defpath)) is None:
            yield command

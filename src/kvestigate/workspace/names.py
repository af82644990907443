"""What workspaces, runs, directories and variables may be called. Pure.

All of these end up in paths and shell scripts on hosts, where everything runs as root: so what is
accepted is narrow, besides being quoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from kvestigate.errors import InputError

DEFAULT_ROOT = "/opt/kvestigate-workspaces"
"""The directory of a host that workspaces are in."""

RESERVED = ("logs", "pids")
"""Directories of a workspace that only we write to."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}", re.ASCII)
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
_NODE = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)
_PART = re.compile(r"[A-Za-z0-9._+@=,-]+", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_KERNEL = ("proc", "sys", "dev")
_LONGEST_PATH = 1024
_LONGEST_READ = 3_000
_LONGEST_PART = 255
"""Bytes. Linux has no longer names, and no paths of more than 4096 with the workspace's own."""

_OURS = {
    "CUDA_VISIBLE_DEVICES": "say which GPUs with --gpu, so that they are bound by UUID",
    "KVESTIGATE_WORKSPACE": "it tells which workspace a process belongs to",
    "KVESTIGATE_TAG": "it tells which run a process belongs to",
}


def check_name(name: str, where: str = "workspace.name") -> str:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot be the name of a workspace",
            where=where,
            hint="use up to 63 of a-z, 0-9, '-', '_' and '.', a letter or digit first",
        )
    return name


def check_node(name: str, where: str = "workspace.node") -> str:
    if not _NODE.fullmatch(name):
        raise InputError(
            f"{name!r} cannot be the name of a node",
            where=where,
            hint="see kvestigate report run nodes",
        )
    return name


def check_tag(tag: str) -> str:
    if not _TAG.fullmatch(tag):
        raise InputError(
            f"{tag!r} cannot be the tag of a run",
            where="tag",
            hint="use up to 63 letters, digits, '-', '_' and '.', a letter or digit first",
        )
    return tag


def check_root(root: str, where: str = "workspace.root") -> str:
    """An absolute directory below which workspaces are made."""
    parts = root.split("/")
    if parts[0] or len(parts) < 2 or len(root) > _LONGEST_PATH or not all(map(_plain, parts[1:])):
        raise InputError(
            f"{root!r} cannot be the directory of workspaces",
            where=where,
            hint="give an absolute directory without '..' and blanks, not '/' itself",
        )
    if parts[1] in _KERNEL:
        raise InputError(f"{root!r} belongs to the kernel", where=where, hint="try /opt or /srv")
    return root


def check_subdir(subdir: str, where: str = "subdir") -> str:
    """A directory inside a workspace that users may fill: `code`, `datasets/input`."""
    parts = subdir.split("/")
    if len(subdir) > _LONGEST_PATH or not all(map(_plain, parts)) or parts[0].startswith("."):
        raise InputError(
            f"{subdir!r} is not a directory inside a workspace",
            where=where,
            hint="give a relative path without '..' and blanks: code, datasets/input",
        )
    if parts[0] in RESERVED:
        raise InputError(
            f"{subdir!r}: {parts[0]}/ is kept for the runs",
            where=where,
            hint="use code, env, datasets, checkpoints or a directory of your own",
        )
    return subdir


def check_path(path: str) -> str:
    """Something inside a workspace to read: any characters, no way out."""
    data = _bytes(check_word(path, "path"))
    if len(data) > _LONGEST_READ or any(len(part) > _LONGEST_PART for part in data.split(b"/")):
        raise InputError(f"{path[:60]!r}... is too long for a path", where="path")
    if not path or path.startswith("/") or "\0" in path or ".." in path.split("/"):
        raise InputError(
            f"{path!r} is not a path inside a workspace",
            where="path",
            hint="give it relative to the workspace: checkpoints/last.pt, logs",
        )
    return path


def check_variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise InputError(
            f"{name!r} cannot be the name of a variable",
            where="env",
            hint="use letters, digits and '_', no digit first",
        )
    if name in _OURS:
        raise InputError(f"{name} is set by kvestigate", where="env", hint=_OURS[name])
    return name


def check_word(word: str, where: str) -> str:
    """Text that can be an argument or the value of a variable."""
    if "\0" in word:
        raise InputError(f"{word[:60]!r} has a zero byte in it", where=where)
    try:
        word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise InputError(f"{word[:60]!r} cannot be written as UTF-8", where=where) from None
    return word


_LONGEST_COMMAND = 100_000
_LONGEST_VALUE = 100_000
_LARGEST_ENVIRONMENT = 500_000
_LONGEST_NAMES = 10_000
_MOST_VARIABLES = 1_000
"""Bytes. Linux takes no argument and no variable of more than 128 KiB, nor 2 MiB of all together;
a run has its command in one argument besides, as JSON, and all names of its variables in another,
three times."""


def check_amount(command: Sequence[str], env: Mapping[str, str]) -> None:
    """InputError if a host could not start a command of this length with these variables."""
    shown = [_bytes(word).decode("utf-8", "replace") for word in command]
    if len(json.dumps(shown, ensure_ascii=False).encode()) > _LONGEST_COMMAND:
        raise InputError(
            f"is longer than {_LONGEST_COMMAND:,} bytes",
            where="command",
            hint="send long texts as files, with workspace sync",
        )
    sizes = {name: len(_bytes(value)) for name, value in env.items()}
    for name, size in sizes.items():
        if size > _LONGEST_VALUE:
            raise InputError(f"is longer than {_LONGEST_VALUE:,} bytes", where=f"env.{name}")
    if sum(sizes.values()) > _LARGEST_ENVIRONMENT:
        raise InputError(f"is larger than {_LARGEST_ENVIRONMENT:,} bytes", where="env")
    if sum(map(len, sizes)) > _LONGEST_NAMES or len(sizes) > _MOST_VARIABLES:
        raise InputError(
            f"has more than {_MOST_VARIABLES:,} variables, or names of more than "
            f"{_LONGEST_NAMES:,} bytes",
            where="env",
        )


def _bytes(word: str) -> bytes:
    return word.encode("utf-8", "surrogateescape")


def _plain(part: str) -> bool:
    return part not in (".", "..") and _PART.fullmatch(part) is not None

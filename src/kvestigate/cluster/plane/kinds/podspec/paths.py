"""Paths of files inside volumes and containers. Pure."""

from __future__ import annotations

from kvestigate.kube import causes
from kvestigate.kube.causes import Cause

FILE_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def no_backsteps(path: str, value: str) -> list[Cause]:
    if ".." not in value or ".." not in value.split("/"):
        return []
    return [causes.invalid(path, value, "must not contain '..'")]


def descending(path: str, value: str) -> list[Cause]:
    """Refuse absolute paths and `..`."""
    problems = no_backsteps(path, value)
    if value.startswith("/"):
        problems.insert(0, causes.invalid(path, value, "must be a relative path"))
    return problems


def unreserved(path: str, value: str) -> list[Cause]:
    """Refuse absolute paths and names that start with `..`, which the kubelet uses itself."""
    problems = descending(path, value)
    if value.startswith("..") and not value.startswith("../"):
        problems.append(causes.invalid(path, value, "must not start with '..'"))
    return problems


def mode(path: str, value: int | None) -> list[Cause]:
    if value is None or 0 <= value <= 0o777:
        return []
    return [causes.invalid(path, value, FILE_MODE)]

"""Paths of files inside volumes and containers. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds.checks import Causes
from kvestigate.kube import causes

FILE_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def no_backsteps(path: str, value: str) -> Causes:
    if ".." in value.split("/"):
        yield causes.invalid(path, value, "must not contain '..'")


def descending(path: str, value: str) -> Causes:
    """Relative, and never upwards."""
    if value.startswith("/"):
        yield causes.invalid(path, value, "must be a relative path")
    yield from no_backsteps(path, value)


def unreserved(path: str, value: str) -> Causes:
    """A name the kubelet does not use itself: those start with two dots."""
    yield from descending(path, value)
    if value.startswith("..") and not value.startswith("../"):
        yield causes.invalid(path, value, "must not start with '..'")


def mode(path: str, value: int | None) -> Causes:
    if value is not None and not 0 <= value <= 0o777:
        yield causes.invalid(path, value, FILE_MODE)

"""Which plane a path belongs to. Pure."""

from __future__ import annotations

from kvestigate.errors import NotFound
from kvestigate.kube.names import label_problems

ROOT = "root"
"""The plane behind `/`; its members' paths never name it."""

_PREFIX = "/clusters/"
_SUFFIX = "/control-plane"


def split(path: str) -> tuple[str, str]:
    """`(plane, path relative to that plane's API root)`."""
    if not path.startswith(_PREFIX):
        return ROOT, path
    plane, found, rest = path[len(_PREFIX) :].partition(_SUFFIX)
    if not found and "/" not in plane.rstrip("/"):
        return ROOT, path  # about the plane, not inside it
    if not found or "/" in plane or (rest and not rest.startswith("/")):
        raise NotFound(f'no API at "{path}": planes are served at /clusters/ID/control-plane')
    if problems := label_problems(plane):
        raise NotFound(f'"{plane}" cannot be the id of a plane: {problems[0]}')
    return plane, rest or "/"


def root_path(plane: str) -> str:
    """The API root of a plane, without a trailing slash."""
    return "" if plane == ROOT else f"{_PREFIX}{plane}{_SUFFIX}"

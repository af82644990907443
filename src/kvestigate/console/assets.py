"""The files that browsers load: our own, and third-party ones that are shipped but not committed.

`browser_assets.json` pins every third-party file by version and hash. Building or installing the
package fetches them; whoever installs without a registry has none, and the console works without:
every page is complete when it arrives, and only liveness is missing. A file that does not have its
pinned hash is not served. Requests name files by their key here, never by a path.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple

import msgspec

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_OWN = ("console.css", "console.js", "icon.svg")
_MANIFEST = "browser_assets.json"
_THIRD_PARTY = "third_party"


class PinnedFile(msgspec.Struct, frozen=True):
    path: str
    """Within the package of npm."""
    name: str
    """As we serve it."""
    sha384: str


class PinnedPackage(msgspec.Struct, frozen=True):
    package: str
    version: str
    sha512: str
    """Of the archive, in base64, as npm has it in `dist.integrity`."""
    license: str
    files: tuple[PinnedFile, ...]


class Asset(NamedTuple):
    address: str
    integrity: str = ""
    """`sha384-...`, which browsers check; empty for our own files."""


@dataclass(frozen=True, slots=True)
class Content:
    body: bytes
    type: str


STYLE = Asset("/static/console.css")


@cache
def contents() -> dict[str, Content]:
    """All files that are served, by name."""
    root = resources.files("kvestigate.console")
    found = {name: Content((root / "static" / name).read_bytes(), _type(name)) for name in _OWN}
    for file in pinned():
        place = root / "static" / _THIRD_PARTY / file.name
        if place.is_file() and _digest(body := place.read_bytes()) == file.sha384:
            found[file.name] = Content(body, _type(file.name))
    return found


def scripts() -> list[Asset]:
    """The scripts of every page; those that are missing are left out."""
    hashes = {file.name: file.sha384 for file in pinned() if file.name in contents()}
    third = [Asset(f"/static/{name}", f"sha384-{sha}") for name, sha in hashes.items()]
    return [*third, Asset("/static/console.js")]


def pinned() -> list[PinnedFile]:
    """All third-party files that there may be."""
    data = (resources.files("kvestigate.console") / _MANIFEST).read_bytes()
    packages = msgspec.json.decode(data, type=list[PinnedPackage])
    return [file for package in packages for file in package.files]


def _digest(body: bytes) -> str:
    return base64.b64encode(hashlib.sha384(body).digest()).decode()


def _type(name: str) -> str:
    return f"{_TYPES[name[name.rindex('.') :]]}; charset=utf-8"

"""Files to and from the workspaces of a job, of any size: they go and come in parts."""

from __future__ import annotations

import base64
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from kvestigate_client.extraction import extract
from kvestigate_client.gateway import CybernetClient, NoSuchThing, OperationFailed, TooLarge
from kvestigate_client.packing import Listing, Packed, unpack
from kvestigate_client.shards import Shard, call

_PART = 16 << 20
"""Bytes of a file that are fetched at once."""
_LINKS_AND_DIRECTORIES = {"link": tarfile.SYMTYPE, "directory": tarfile.DIRTYPE}


def listing(client: CybernetClient, shard: Shard, path: str) -> Listing:
    """What is in a directory of a shard; empty if nothing is, or if that cannot be known."""
    try:
        found = call(client, "workspace.fetch", shard, path=path, limit=1)
    except (NoSuchThing, OperationFailed):  # older gateways call a missing directory a failure
        return {}
    return {entry["path"]: entry for entry in found["entries"]}


def in_all(listings: Sequence[Listing]) -> Listing:
    """What is the same in all directories."""
    first, *others = listings
    return {
        path: entry
        for path, entry in first.items()
        if all(other.get(path) == entry for other in others)
    }


def send(client: CybernetClient, shard: Shard, packed: Packed, subdir: str) -> None:
    encoded = base64.b64encode(packed.archive).decode()
    more = {"offset": packed.offset} if packed.offset else {}
    call(client, "workspace.sync", shard, archive=encoded, subdir=subdir, **more)


def bring(client: CybernetClient, shard: Shard, path: str, target: Path) -> None:
    """A file or directory of a shard, into a directory here."""
    try:
        archive = call(client, "workspace.fetch", shard, path=path)["archive"]
        unpack(base64.b64decode(archive), target)
    except TooLarge:
        _Parts(client, shard).bring(path, target)


class _Parts:
    """Fetches what is too large for one answer."""

    def __init__(self, client: CybernetClient, shard: Shard) -> None:
        self._client = client
        self._shard = shard

    def bring(self, path: str, target: Path) -> None:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target) as archive:
            with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
                self._gather(path, tar)
            extract(archive, target)

    def _fetch(self, path: str, offset: int = 0) -> Any:
        more = {"offset": offset} if offset else {}
        return call(self._client, "workspace.fetch", self._shard, path=path, limit=_PART, **more)

    def _gather(self, path: str, tar: tarfile.TarFile) -> None:
        """What is there as one tar, file by file and part by part: of any size."""
        found = self._fetch(path)
        top = tarfile.TarInfo(PurePosixPath(path).name)
        if found["size"] is not None:
            self._add(path, top, found, tar)
            return
        top.type = tarfile.DIRTYPE
        tar.addfile(top)
        for entry in found["entries"]:
            info = tarfile.TarInfo(f"{top.name}/{entry['path']}")
            info.mtime, info.mode = entry["modified"], 0o755 if entry["executable"] else 0o644
            if entry["kind"] == "file":
                inner = f"{path}/{entry['path']}"
                self._add(inner, info, self._fetch(inner), tar)
            elif entry["kind"] in _LINKS_AND_DIRECTORIES:
                info.type, info.linkname = _LINKS_AND_DIRECTORIES[entry["kind"]], entry["target"]
                tar.addfile(info)

    def _add(self, path: str, info: tarfile.TarInfo, first: Any, tar: tarfile.TarFile) -> None:
        """A file, of which the first part is here; what it gets longer meanwhile is left out."""
        info.size = first["size"] or 0
        with tempfile.SpooledTemporaryFile(_PART) as content:
            part = base64.b64decode(first["archive"])
            while part and content.tell() < info.size:
                content.write(part)
                offset = content.tell()
                if offset < info.size:
                    part = base64.b64decode(self._fetch(path, offset)["archive"])
            if content.tell() < info.size:
                raise OperationFailed(f"{path}: was cut off while it was fetched")
            content.seek(0)
            tar.addfile(info, content)

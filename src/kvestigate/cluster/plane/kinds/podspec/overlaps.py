"""Files of one volume that would be at the same place, or one inside the other. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

Object = dict[str, Any]


class _File(NamedTuple):
    path: str
    source: str
    """What puts it there, if not the whole volume does."""

    def __str__(self) -> str:
        return f'"{self.path}" ({self.source})' if self.source else f'"{self.path}"'


def warn_of_overlaps(volume: Object) -> list[str]:
    return [f'volume "{volume["name"]}" {warning}' for warning in _of_source(volume)]


def _of_source(volume: Object) -> Iterator[str]:
    for told, files in _mapped(volume):
        for overlap in _overlaps(files):
            yield f"({told}): overlapping paths: {overlap}"
    if "projected" not in volume:
        return
    sources = volume["projected"].get("sources") or []
    for source in sources:
        if not source:
            yield "(Projected) has no sources provided"
    if len(sources) > 1:
        for overlap in _overlaps([file for source in sources for file in _projected(source)]):
            yield f"(Projected): overlapping paths: {overlap}"


def _mapped(volume: Object) -> Iterator[tuple[str, list[_File]]]:
    if items := (volume.get("configMap") or {}).get("items"):
        yield f'ConfigMap "{volume["configMap"].get("name", "")}"', _files(items)
    if items := (volume.get("secret") or {}).get("items"):
        yield f'Secret "{volume["secret"].get("secretName", "")}"', _files(items)
    if items := (volume.get("downwardAPI") or {}).get("items"):
        yield "DownwardAPI", _files(items)


def _projected(source: Object) -> list[_File]:
    for field, told in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if items := (source.get(field) or {}).get("items"):
            return _files(items, f'{told} "{source[field].get("name", "")}"')
    if items := (source.get("downwardAPI") or {}).get("items"):
        return _files(items, "DownwardAPI")
    if "serviceAccountToken" in source:
        return _files([source["serviceAccountToken"]], "ServiceAccountToken")
    return []


def _files(items: list[Object], source: str = "") -> list[_File]:
    return [_File((item.get("path") or "").rstrip("/"), source) for item in items]


def _overlaps(files: list[_File]) -> Iterator[str]:
    files = [file for file in files if file.path]
    paths = {file.path for file in files}
    if len(paths) == len(files) and not any("/" in path for path in paths):
        return  # as nearly always: each file has a name of its own
    seen: list[_File] = []
    for file in files:
        for other in seen:
            mine, theirs = f"{file.path}/", f"{other.path}/"
            if mine.startswith(theirs) or theirs.startswith(mine):
                yield f"{file} with {other}"
        seen.append(file)

"""Files of one volume that would be at the same place, or one inside the other. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

Object = dict[str, Any]


_COMPARED = 32
"""Earlier files that a file is compared with: a volume may have thousands."""


class _File(NamedTuple):
    path: str
    source: str
    """What puts it there, if not the whole volume does."""

    def __str__(self) -> str:
        return f'"{self.path}" ({self.source})' if self.source else f'"{self.path}"'


def warn_of_overlaps(volume: Object) -> list[str]:
    return [f'volume "{volume["name"]}" {warning}' for warning in _warnings(volume)]


def _warnings(volume: Object) -> Iterator[str]:
    for field, name, title in (
        ("configMap", "name", "ConfigMap"),
        ("secret", "secretName", "Secret"),
        ("downwardAPI", "", "DownwardAPI"),
    ):
        if items := (volume.get(field) or {}).get("items"):
            shown = f'{title} "{volume[field].get(name, "")}"' if name else title
            for overlap in _overlaps([(items, "")]):
                yield f"({shown}): overlapping paths: {overlap}"
    if "projected" not in volume:
        return
    sources = volume["projected"].get("sources") or []
    for source in sources:
        if not source:
            yield "(Projected) has no sources provided"
    if len(sources) > 1:
        for overlap in _overlaps([_projected(source) for source in sources]):
            yield f"(Projected): overlapping paths: {overlap}"


def _projected(source: Object) -> tuple[list[Object], str]:
    """The items of a source, and how it is called."""
    for field, title in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if items := (source.get(field) or {}).get("items"):
            return items, f'{title} "{source[field].get("name", "")}"'
    if items := (source.get("downwardAPI") or {}).get("items"):
        return items, "DownwardAPI"
    if "serviceAccountToken" in source:
        return [source["serviceAccountToken"]], "ServiceAccountToken"
    return [], ""


def _overlaps(groups: list[tuple[list[Object], str]]) -> Iterator[str]:
    """Pairs among the items of all groups, each group with the name of its source."""
    paths = [item.get("path") or "" for items, _ in groups for item in items]
    if len(set(paths)) == len(paths) and "/" not in "".join(paths):
        return  # as nearly always: each file has a name of its own
    seen: list[_File] = []
    for items, source in groups:
        for item in items:
            file = _File((item.get("path") or "").rstrip("/"), source)
            if not file.path:
                continue
            for other in seen[:_COMPARED]:
                mine, theirs = f"{file.path}/", f"{other.path}/"
                if mine.startswith(theirs) or theirs.startswith(mine):
                    yield f"{file} with {other}"
            seen.append(file)

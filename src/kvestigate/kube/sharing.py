"""Lets views that say the same have it in common. Pure.

Thousands of pods come from few templates and are in few states: decoded one by one, each has its
own copy of the same words. What views are made of never changes, so one copy does for all.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import force_setattr

_MOST = 50_000
"""Parts that are remembered; then it begins anew, as what was common once may be no more."""
_LONGEST = 64
"""Characters beyond which a text is hardly the same as another."""
_UNIQUE = frozenset({"name", "uid", "resource_version", "pod_ip", "container_id"})
"""Fields that differ wherever they occur, or are small among what else does."""


class Pool:
    """Remembers parts of views."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def share(self, view: msgspec.Struct) -> None:
        """Make the parts of a view those of other views that are equal."""
        if len(self._known) > _MOST:
            self._known.clear()
        self._parts(view)

    def _parts(self, view: msgspec.Struct) -> None:
        for name in view.__struct_fields__:
            if name in _UNIQUE:
                continue
            own = getattr(view, name)
            if own:
                common = self._common(own)
                if common is not own:
                    force_setattr(view, name, common)

    def _common(self, part: Any) -> Any:
        """What equals `part` in value and in kind: 1 must not become True."""
        kind = type(part)
        if kind is str:
            return self._known.setdefault(part, part) if len(part) <= _LONGEST else part
        if kind is tuple:
            return self._sequence(part)
        if kind is dict:
            if all(type(value) is str for value in part.values()):
                return self._known.setdefault(tuple(part.items()), part)
            return part
        if kind is datetime:
            return self._known.setdefault(part, part) if part.tzinfo is UTC else part
        if isinstance(part, msgspec.Struct):
            self._parts(part)
            return self._remembered(part)
        return part

    def _sequence(self, part: tuple[Any, ...]) -> Any:
        if not isinstance(part[0], msgspec.Struct) and type(part[0]) is not str:
            return part
        return self._remembered(tuple([self._common(item) for item in part]))

    def _remembered(self, part: Any) -> Any:
        try:
            return self._known.setdefault(part, part)
        except TypeError:  # it has a dict in it
            return part

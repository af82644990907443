"""Lists as strategic merge patches see them: elements with an identity, and a merged order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kvestigate.errors import ApiError
from kvestigate.kube.patches.values import MAP, shown, type_of

Identity = tuple[type, Any]
"""A scalar element, or an object's merge key; with its type, because True is not 1."""

_MISSING: Identity = (type(None), "")


def identities(elements: Iterable[Any], key: str = "", *, strict: bool = True) -> list[Identity]:
    """The identity of each element; not strict, an object without the merge key is no match."""
    merge_keys = []
    for element in elements:
        value = element
        if key:
            if not isinstance(element, dict):
                raise ApiError(f"expected a {MAP}, but received a {type_of(element)}")
            if key not in element:
                if strict:
                    what = shown(element)
                    raise ApiError(f"map: {what} does not contain declared merge key: {key}")
                merge_keys.append(_MISSING)
                continue
            value = element[key]
        if isinstance(value, dict | list):
            raise ApiError(f"{shown(value)} cannot tell the elements of a list apart")
        merge_keys.append((type(value), value))
    return merge_keys


def arrange(elements: Iterable[Any], wanted: list[Any], live: list[Any], key: str) -> list[Any]:
    """Elements in `wanted` follow its order; the others keep their place among the live ones.

    Each of the others goes before the first wanted element that the live list has after it.
    """
    elements = list(elements)
    rank = _ranks(wanted, key)
    live_rank = _ranks(live, key)
    chosen: list[tuple[Identity, Any]] = []
    others: list[tuple[Identity, Any]] = []
    for element, identity in zip(elements, identities(elements, key), strict=True):
        (chosen if identity in rank else others).append((identity, element))
    chosen.sort(key=lambda pair: rank[pair[0]])
    others.sort(key=lambda pair: live_rank.get(pair[0], len(live)))
    return _interleave(others, chosen, live_rank)


def _ranks(elements: list[Any], key: str) -> dict[Identity, int]:
    ranks: dict[Identity, int] = {}
    for index, identity in enumerate(identities(elements, key)):
        ranks.setdefault(identity, index)
    return ranks


def _interleave(
    others: list[tuple[Identity, Any]],
    chosen: list[tuple[Identity, Any]],
    live_rank: Mapping[Identity, int],
) -> list[Any]:
    result = []
    waiting = iter(others)
    other = next(waiting, None)
    for identity, element in chosen:
        place = live_rank.get(identity, -1)
        while other is not None and live_rank.get(other[0], place) < place:
            result.append(other[1])
            other = next(waiting, None)
        result.append(element)
    if other is not None:
        result.append(other[1])
        result += [element for _, element in waiting]
    return result

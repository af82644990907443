"""Pod specs as a whole: what is wrong with one, and whether there is advice to give. Pure.

Most writes to a pod leave its spec alone, and most pods are like others: what was found out
about one is remembered by its outline.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kvestigate.cluster.plane.kinds.podspec.outline import outline
from kvestigate.cluster.plane.kinds.podspec.spec import each_container, validate_pod_spec
from kvestigate.cluster.plane.kinds.podspec.warnings import warn_of_pod
from kvestigate.kube.causes import Cause

Object = dict[str, Any]


class Judged(NamedTuple):
    causes: list[Cause]
    quiet: bool
    """Whether it is certain that there is no advice to give."""


def judge_pod_spec(spec: Object, path: str, pod: Object) -> Judged:
    """A defaulted spec; `pod` is the metadata of its pod."""
    known = outline(spec, pod)
    quiet = _valid.get(known)
    if quiet is not None:
        return Judged([], quiet)
    found = validate_pod_spec(spec, path, pod)
    if found:
        return Judged(found, False)
    quiet = not _has_twins(spec) and not warn_of_pod({"spec": spec})
    if len(known) <= _LONGEST:
        if len(_valid) >= _MOST:
            _valid.clear()
        _valid[known] = quiet
    return Judged([], quiet)


def _has_twins(spec: Object) -> bool:
    """Whether a variable is there twice: what advice that needs depends on what it says."""
    return any(
        len({variable["name"] for variable in variables}) < len(variables)
        for _, container in each_container(spec, "")
        if (variables := container.get("env"))
    )


_valid: dict[bytes, bool] = {}
"""Outlines of specs that were found to be valid, and whether they need no advice."""
_MOST = 4096
_LONGEST = 8192
"""Bytes of an outline that is worth the memory."""

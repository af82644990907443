"""Applies by kubectl, which applied from its own side before servers could.

What it applied then is in an annotation, and the fields belong to whoever kubectl was called at
the time. It may take them over, and keeps the annotation up to date for those who still read it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate.kube.apply import fieldset, ownership
from kvestigate.kube.apply.checking import misfit
from kvestigate.kube.apply.comparing import compare
from kvestigate.kube.apply.fieldset import FieldSet
from kvestigate.kube.apply.managers import Managers
from kvestigate.kube.apply.mentioning import mentioned
from kvestigate.kube.apply.ownership import Contested, Object, Writer

NAME = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_encode = msgspec.json.Encoder(order="sorted").encode


def apply(
    live: Object, config: Object, managers: Managers, by: Writer, *, force: bool, now: str | None
) -> tuple[Object | None, Managers]:
    """Like `ownership.apply`."""
    try:
        new, after = ownership.apply(live, config, managers, by, force=force, now=now)
    except Contested as contested:
        mine = _applied_before(live, by)
        left = {
            manager: rest
            for manager, fields in contested.fields.items()
            if (rest := fieldset.difference(fields, mine))
        }
        if left:
            raise Contested(left) from None
        new, after = ownership.apply(live, config, managers, by, force=True, now=now)
    result = live if new is None else new
    if (result["metadata"].get("annotations") or {}).get(LAST_APPLIED):
        new = _with_annotation(result, config)
    return new, after


def _applied_before(live: Object, by: Writer) -> FieldSet:
    """What the annotation says and is still so."""
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED) or "null"
    try:
        last: Any = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return fieldset.EMPTY
    if not isinstance(last, dict) or last.get("apiVersion") != by.version:
        return fieldset.EMPTY
    if misfit(last, by.shape):
        return fieldset.EMPTY
    comparison = compare(last, live, by.shape)
    fields = mentioned(last, by.shape)
    for differing in (comparison.modified, comparison.added, comparison.removed):
        fields = fieldset.difference(fields, differing)
    return fields


def _with_annotation(obj: Object, config: Object) -> Object:
    meta = dict(config["metadata"])
    if isinstance(meta.get("annotations"), dict):
        others = {key: value for key, value in meta["annotations"].items() if key != LAST_APPLIED}
        meta["annotations"] = others
    text = fieldset.escaped(_encode({**config, "metadata": meta}).decode())
    annotations = {**obj["metadata"]["annotations"], LAST_APPLIED: f"{text}\n"}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}

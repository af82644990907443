"""Workloads as a lossless stream of normalised `InferenceRequest`s.

From a cluster (`watching`) or from manifests (`documents`), through pure normalisation
(`normalise`) to sinks that fail alone. The names below are for programs that embed it; they
are imported when they are first used, so that a command pays only for what it runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvestigate.collect.library import list_and_emit_initial, stream_inference_requests
    from kvestigate.collect.model import ContainerSpec, InferenceRequest
    from kvestigate.collect.seen import SeenCache

__all__ = [
    "ContainerSpec",
    "InferenceRequest",
    "SeenCache",
    "list_and_emit_initial",
    "stream_inference_requests",
]

_HOMES = {
    "ContainerSpec": "model",
    "InferenceRequest": "model",
    "SeenCache": "seen",
    "list_and_emit_initial": "library",
    "stream_inference_requests": "library",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    public: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return public

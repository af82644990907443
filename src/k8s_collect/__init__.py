"""Workloads of a cluster as `InferenceRequest`s, under the name that programs import.

    from k8s_collect import SeenCache, list_and_emit_initial, stream_inference_requests

`python -m k8s_collect watch` is the command `k8s-collect watch`, and `k8s_collect.models` has the
Pydantic models. Everything is implemented in `kvestigate.collect`; here are only public names.
"""

from __future__ import annotations

from kvestigate.collect import (
    ContainerSpec,
    InferenceRequest,
    SeenCache,
    list_and_emit_initial,
    stream_inference_requests,
)

__all__ = [
    "ContainerSpec",
    "InferenceRequest",
    "SeenCache",
    "list_and_emit_initial",
    "stream_inference_requests",
]

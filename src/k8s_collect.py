"""Workloads of a cluster as `InferenceRequest`s, under the name that programs import.

    from k8s_collect import SeenCache, list_and_emit_initial, stream_inference_requests

`python -m k8s_collect watch` is the command `k8s-collect watch`. Everything is implemented in
`kvestigate.collect`; this module only holds the public names.
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

if __name__ == "__main__":
    from kvestigate.cli.main import k8s_collect

    k8s_collect()

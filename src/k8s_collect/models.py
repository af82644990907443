"""The Pydantic models of the events: `from k8s_collect.models import InferenceRequest`."""

from __future__ import annotations

from kvestigate.collect import ContainerSpec, InferenceRequest

__all__ = ["ContainerSpec", "InferenceRequest"]

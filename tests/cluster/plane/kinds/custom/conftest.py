"""Definitions of custom resources to try things on."""

from __future__ import annotations

from typing import Any

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PROBES = "/apis/example.com/v1/namespaces/default/probes"


def definition(spec: dict[str, Any] | None = None, **version: Any) -> dict[str, Any]:
    """A definition of probes, whose `spec` has a schema; `version` goes into its version."""
    fields = {} if spec is None else {"properties": {"spec": spec}}
    schema = {"openAPIV3Schema": {"type": "object", **fields}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "probes.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "probes", "kind": "Probe", "shortNames": ["pb"]},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": schema, **version}
            ],
        },
    }


def probe(spec: Any = None, name: str = "a", **more: Any) -> dict[str, Any]:
    obj = {"apiVersion": "example.com/v1", "kind": "Probe", "metadata": {"name": name}, **more}
    return obj if spec is None else {**obj, "spec": spec}

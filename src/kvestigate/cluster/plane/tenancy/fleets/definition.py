"""The CustomResourceDefinition of Fleets. Pure."""

from __future__ import annotations

from typing import Any

from kvestigate.cluster.plane.tenancy.fleets.model import (
    FAILED,
    GROUP,
    PENDING,
    PLURAL,
    READY,
    VERSION,
)

MOST = 10_000
"""Members of one Fleet."""

_PREFIX = "^[a-z0-9]([-a-z0-9]*)?$"
_LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


def definition() -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {
                "plural": PLURAL,
                "singular": "fleet",
                "kind": "Fleet",
                "listKind": "FleetList",
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema()},
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.readyReplicas",
                        },
                    },
                    "additionalPrinterColumns": [
                        _column("Replicas", "integer", ".spec.replicas"),
                        _column("Ready", "integer", ".status.readyReplicas"),
                        _column("Age", "date", ".metadata.creationTimestamp"),
                    ],
                }
            ],
        },
    }


def schema() -> dict[str, Any]:
    return _object(
        "A number of planes that are made alike.",
        spec=_object(
            "What is wanted.",
            replicas=_integer("How many members there should be.", minimum=0, maximum=MOST)
            | {"default": 1},
            namePrefix=_string(
                "What the ids of members begin with; a number of four digits follows. "
                "The name of the Fleet and a hyphen if not given.",
                pattern=_PREFIX,
                maxLength=58,
            ),
            names=_list(
                "The ids of the members, as many as there are replicas, instead of a prefix.",
                {"type": "string", "pattern": _LABEL, "maxLength": 63},
            ),
            ttlSeconds=_integer(
                "How long after its creation the Fleet and its members are deleted.", minimum=1
            ),
            memberTTLSeconds=_integer(
                "How long after it became ready a member is made anew.", minimum=1
            ),
            template=_template(),
        ),
        status=_object(
            "What is.",
            observedGeneration={"type": "integer", "format": "int64"},
            replicas=_integer("Members that there are."),
            readyReplicas=_integer("Members that can be used."),
            members=_list("One for each member.", _member()),
            conditions=_list("Ready says whether all members are.", _condition()),
        ),
    )


def _template() -> dict[str, Any]:
    return _object(
        "What members start with: a plane or a state of one, then a scenario, then objects.",
        fromPlane=_string("The id of a plane that members are copies of.", maxLength=63),
        fromSnapshot=_object(
            "A state that a plane was in.",
            clusterID=_string("The id of the plane.", maxLength=63),
            checkpoint=_string("The name under which the state is kept."),
            resourceVersion=_string("The revision, if it is retained."),
        )
        | {"required": ["clusterID"]},
        scenario=_string("The name of a scenario whose objects are applied."),
        objects=_list(
            "Objects that are applied, in this order.",
            {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
        ),
        clock={
            "type": "string",
            "enum": ["wall", "virtual"],
            "description": "Whose time members live in; virtual time is moved by steps only.",
        },
        seed=_integer("Of all that looks random in members with a virtual clock."),
    )


def _member() -> dict[str, Any]:
    return _object(
        "One plane.",
        clusterID={"type": "string"},
        phase={"type": "string", "enum": [PENDING, READY, FAILED]},
        message={"type": "string"},
        lastTransitionTime={"type": "string", "format": "date-time"},
    ) | {"required": ["clusterID", "phase"]}


def _condition() -> dict[str, Any]:
    return _object(
        "One aspect of how the Fleet is.",
        type={"type": "string"},
        status={"type": "string", "enum": ["True", "False", "Unknown"]},
        reason={"type": "string"},
        message={"type": "string"},
        lastTransitionTime={"type": "string", "format": "date-time"},
        observedGeneration={"type": "integer", "format": "int64"},
    ) | {"required": ["type", "status"]}


def _object(about: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "description": about, "properties": properties}


def _list(about: str, items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "description": about, "items": items}


def _string(about: str, **rules: Any) -> dict[str, Any]:
    return {"type": "string", "description": about, **rules}


def _integer(about: str, **rules: Any) -> dict[str, Any]:
    return {"type": "integer", "description": about, **rules}


def _column(name: str, type_: str, path: str) -> dict[str, str]:
    return {"name": name, "type": type_, "jsonPath": path}

"""Distil the roles and bindings that every cluster starts with into a table.

    kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o json \\
        | python tools/roles.py > src/kvestigate/cluster/plane/access/authz/default_roles.json

Read from a new kube-apiserver on which no controller has run.
"""

from __future__ import annotations

import json
import sys
from typing import Any

BOOTSTRAPPING = "kubernetes.io/bootstrapping"
PLURALS = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
}


def distil(obj: dict[str, Any]) -> dict[str, Any]:
    meta = obj["metadata"]
    kept: dict[str, Any] = {"resource": PLURALS[obj["kind"]], "name": meta["name"]}
    if "namespace" in meta:
        kept["namespace"] = meta["namespace"]
    labels = {key: value for key, value in meta["labels"].items() if key != BOOTSTRAPPING}
    if labels:
        kept["labels"] = labels
    for field in ("aggregationRule", "rules", "subjects", "roleRef"):
        if obj.get(field):
            kept[field] = obj[field]
    return kept


def main() -> None:
    found = [
        distil(obj)
        for obj in json.load(sys.stdin)["items"]
        if BOOTSTRAPPING in obj["metadata"].get("labels", {})
    ]
    lines = (json.dumps(each, separators=(",", ":")) for each in found)
    print("[\n" + ",\n".join(lines) + "\n]")


if __name__ == "__main__":
    main()

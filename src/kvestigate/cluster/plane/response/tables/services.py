"""Columns of Services. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    NAME,
    NONE,
    UNKNOWN,
    Cells,
    Columns,
    age,
    pairs,
    strings,
    wide,
)


def _cells(obj: Object, now: float) -> Cells:
    spec = obj["spec"]
    return [
        obj["metadata"]["name"],
        spec.get("type", ""),
        (spec.get("clusterIPs") or [NONE])[0],
        _external(obj),
        ",".join(_port(port) for port in spec.get("ports") or ()) or NONE,
        age(obj, now),
        pairs(spec.get("selector")),
    ]


def _external(obj: Object) -> str:
    spec = obj["spec"]
    type_, given = spec.get("type"), spec.get("externalIPs") or []
    if type_ == "ExternalName":
        name: str = spec.get("externalName", "")
        return name
    if type_ == "LoadBalancer":
        return ",".join([*balanced(obj), *given]) or "<pending>"
    return ",".join(given) or (NONE if type_ else UNKNOWN)


def balanced(obj: Object) -> list[str]:
    """The addresses that a load balancer gave, in order."""
    ingress = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return sorted({it.get("ip") or it.get("hostname") or "" for it in ingress} - {""})


def _port(port: Object) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port['protocol']}"


SERVICES = Columns(
    (
        NAME,
        *strings("Type", "Cluster-IP", "External-IP", "Port(s)", "Age"),
        *wide("Selector"),
    ),
    _cells,
)

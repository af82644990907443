"""The requests of the contract of planes (`kplane.v1.yaml`), written once. Pure: nothing is sent.

A server of planes is asked by two programs: this SDK, in which agents bring a token, and the
commands `kvestigate plane` and `kvestigate fleet`, which use whatever a kubeconfig has (client
certificates, exec plugins, impersonation). Both take their requests from here, so that a path, a
parameter or a field of a body has one place; each reads answers into what its users want.

Ids and names come from others, agents above all: `segment` refuses those that would lead out of
where they belong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

from kvestigate_client.failures import Invalid

Clock = Literal["wall", "virtual"]

JSON = "application/json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"

CLUSTERS = "/clusters"
FLEETS = "/apis/kplane.dev/v1/fleets"
_VERSION = re.compile(r"(?:[a-z0-9][a-z0-9.-]*/)?[a-z0-9]+")
"""`v1`, `apps/v1`"""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request."""

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    """Those that are None are left out."""
    body: Any = None
    media: str = JSON
    until: Callable[[Any], bool] | None = None
    """The answer is lines of JSON: read them up to the first for which this holds."""
    timeout: float | None = None
    """Seconds to wait for the next part of the answer, if not the client's own."""

    @property
    def query(self) -> dict[str, str]:
        """The parameters as texts."""
        return {key: _text(value) for key, value in self.params.items() if value is not None}

    @property
    def content(self) -> bytes:
        """The body as JSON; empty if there is none."""
        if self.body is None:
            return b""
        try:
            return json.dumps(self.body, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise Invalid(f"the body cannot be written as JSON: {error}") from None


# -- paths -------------------------------------------------------------------------------


def segment(text: str) -> str:
    """One segment of a path."""
    # A server takes an escaped slash for a slash: `web/status` would be another resource. Dots
    # would lead to another plane.
    if not text or text in (".", "..") or "/" in text or "%" in text or not text.isprintable():
        raise Invalid(f"{text!r} is not a name")
    return quote(text, safe="")


def api_root(version: str) -> str:
    """Where an apiVersion is served, below a plane."""
    if not _VERSION.fullmatch(version):
        raise Invalid(f"{version!r} is not an apiVersion")
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def plane_path(id: str) -> str:
    """Where the API of a plane is."""
    return f"{CLUSTERS}/{segment(id)}/control-plane"


def fleet_path(name: str) -> str:
    return f"{FLEETS}/{segment(name)}"


# -- planes ------------------------------------------------------------------------------


def list_planes() -> Outgoing:
    return Outgoing("GET", CLUSTERS)


def get_plane(id: str) -> Outgoing:
    return Outgoing("GET", f"{CLUSTERS}/{segment(id)}")


def create_plane(id: str, clock: Clock, seed: int) -> Outgoing:
    return Outgoing("POST", CLUSTERS, body={"id": id, "clock": clock, "seed": seed})


def delete_plane(id: str) -> Outgoing:
    return Outgoing("DELETE", f"{CLUSTERS}/{segment(id)}")


# -- a plane as a whole ------------------------------------------------------------------


def snapshot(id: str, resources: Iterable[str], *, include_empty: bool) -> Outgoing:
    params = {"resource": _listed(resources), "includeEmpty": include_empty or None}
    return Outgoing("GET", f"{plane_path(id)}/snapshot", params)


def fork(
    id: str, name: str, count: int | None, *, checkpoint: str, resource_version: str = ""
) -> Outgoing:
    body: dict[str, Any] = {
        "name": name,
        "checkpoint": checkpoint,
        "resourceVersion": resource_version,
    }
    if count is not None:
        body["count"] = count
    return Outgoing("POST", f"{plane_path(id)}/fork", body=body)


def list_checkpoints(id: str) -> Outgoing:
    return Outgoing("GET", f"{plane_path(id)}/checkpoints")


def create_checkpoint(id: str, name: str, *, replace: bool) -> Outgoing:
    body = {"name": name, "replace": replace}
    return Outgoing("POST", f"{plane_path(id)}/checkpoints", body=body)


def delete_checkpoint(id: str, name: str) -> Outgoing:
    return Outgoing("DELETE", f"{plane_path(id)}/checkpoints/{segment(name)}")


def restore(id: str, checkpoint: str, *, resource_version: str, seed: int | None) -> Outgoing:
    body: dict[str, Any] = {"checkpoint": checkpoint, "resourceVersion": resource_version}
    if seed is not None:
        body["seed"] = seed
    return Outgoing("POST", f"{plane_path(id)}/restore", body=body)


def diff(id: str, before: str | int, after: str | int | None, resources: Iterable[str]) -> Outgoing:
    params = {"from": before, "to": after, "resource": _listed(resources)}
    return Outgoing("GET", f"{plane_path(id)}/diff", params)


def events(
    id: str,
    after: int | str | None,
    resources: Iterable[str],
    *,
    until: int | str | None = None,
    objects: bool,
) -> Outgoing:
    params = {
        "fromRevision": after,
        "toRevision": until,
        "resource": _listed(resources),
        "objects": objects,
    }
    return Outgoing("GET", f"{plane_path(id)}/events", params)


def step(id: str, seconds: float | None) -> Outgoing:
    """For so long, or until nothing is left to do if None."""
    body = {"untilIdle": True} if seconds is None else {"seconds": seconds}
    return Outgoing("POST", f"{plane_path(id)}/step", body=body)


# -- fleets ------------------------------------------------------------------------------


def list_fleets() -> Outgoing:
    return Outgoing("GET", FLEETS)


def get_fleet(name: str) -> Outgoing:
    return Outgoing("GET", fleet_path(name))


def create_fleet(
    name: str,
    replicas: int,
    *,
    template: Mapping[str, Any] | None = None,
    names: Sequence[str] = (),
    name_prefix: str = "",
    ttl_seconds: int | None = None,
    member_ttl_seconds: int | None = None,
) -> Outgoing:
    spec = {
        "replicas": replicas,
        "template": template or None,
        "names": list(names) or None,
        "namePrefix": name_prefix or None,
        "ttlSeconds": ttl_seconds,
        "memberTTLSeconds": member_ttl_seconds,
    }
    body = {
        "apiVersion": "kplane.dev/v1",
        "kind": "Fleet",
        "metadata": {"name": name},
        "spec": {key: value for key, value in spec.items() if value is not None},
    }
    strict = {"fieldValidation": "Strict"}  # or a misspelt field would be left out silently
    return Outgoing("POST", FLEETS, strict, body)


def scale_fleet(name: str, replicas: int) -> Outgoing:
    return Outgoing("PATCH", fleet_path(name), body={"spec": {"replicas": replicas}}, media=MERGE)


def delete_fleet(name: str) -> Outgoing:
    return Outgoing("DELETE", fleet_path(name))


def _listed(resources: Iterable[str]) -> str | None:
    return ",".join([resources] if isinstance(resources, str) else resources) or None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

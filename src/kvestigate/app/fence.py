"""What holds an App in pods within a cyberspace: whose it is, and where its pods may be. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvestigate.errors import Conflict

HOLDER: Final = "kvestigate.dev/holder"
"""Annotation of all that an App within a cyberspace is made of: `pool/ada`."""


@dataclass(frozen=True, slots=True)
class Fence:
    holder: str = ""
    """In whose name; empty: in no cyberspace."""
    nodes: tuple[str, ...] | None = None
    """Where pods may be; None: anywhere."""

    @property
    def annotations(self) -> dict[str, str]:
        return {HOLDER: self.holder} if self.holder else {}

    @property
    def pod(self) -> dict[str, Any]:
        """What pods need so that no scheduler puts them elsewhere."""
        if self.nodes is None:
            return {}
        # Of a field, unlike of a label, an expression may have one value only.
        terms = [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
            for node in self.nodes
        ]
        required = {"nodeSelectorTerms": terms}
        return {
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
            }
        }

    def check(self, subject: str, metadata: Mapping[str, Any]) -> None:
        """Conflict if an object that is there is held in another name."""
        found = holder_of(metadata)
        if found != self.holder:
            where = f"in the name of {found}" if found else "in no cyberspace"
            raise Conflict(
                f"{subject} was brought up {where}",
                hint="give the --cyberspace and --identity that it was brought up with"
                if found
                else "take it down first, or leave out --cyberspace",
            )


def holder_of(metadata: Mapping[str, Any]) -> str:
    return str((metadata.get("annotations") or {}).get(HOLDER, ""))

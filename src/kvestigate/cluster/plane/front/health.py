"""/healthz, /livez and /readyz, whole or check by check."""

from __future__ import annotations

from collections.abc import Mapping

from kvestigate.cluster.plane.response import answer
from kvestigate.http.message import Response

ENDPOINTS = ("healthz", "livez", "readyz")
# A request gets here only after its plane was opened from the store.
CHECKS = ("ping", "store")


def paths() -> list[str]:
    return [
        path
        for endpoint in ENDPOINTS
        for path in (f"/{endpoint}", *(f"/{endpoint}/{check}" for check in CHECKS))
    ]


def respond(path: str, params: Mapping[str, str]) -> Response | None:
    """The answer of a health endpoint; None if the path is not one."""
    endpoint, deeper, check = path.removeprefix("/").partition("/")
    if endpoint not in ENDPOINTS or (deeper and check not in CHECKS):
        return None
    if check or "verbose" not in params:
        return answer.plain("ok")
    excluded = params.get("exclude", "")
    lines = [f"[+]{name} {'excluded: ok' if name == excluded else 'ok'}\n" for name in CHECKS]
    if excluded and excluded not in CHECKS:
        lines.append(f'warn: some health checks cannot be excluded: no matches for "{excluded}"\n')
    return answer.plain("".join([*lines, f"{endpoint} check passed\n"]))

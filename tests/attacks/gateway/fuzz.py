"""Random requests at a gateway: nothing leaks, nothing breaks, nothing gets past the policy.

`python -m tests.attacks.gateway.fuzz 1000000` sends a million of them over HTTP to a gateway on
loopback, and prints what came of it. The cluster behind it has no hosts, so whatever a request
would do to one ends there; what is fuzzed is everything before: routes, headers, tokens, bodies,
schemas, the policy, the ledger and the record.
"""

from __future__ import annotations

import asyncio
import copy
import json
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from kvestigate.client.access import AccessOptions, resolve
from kvestigate.cluster.plane.front.serving import Listen, ServeOptions, serving
from tests.cybernet.conftest import TOKENS, changed, fronted

CANARY = "canary-7f3a9c"
ALLOWED = ["workspace.status", "workspace.create", "workspace.sync", "workspace.run", "pods"]
FORBIDDEN = ["workspace.apply", "node.drain", "exec", "fanout.exec", "delete", "app.up", "nothing"]
_TOGETHER = 48
_BETWEEN_REPORTS = 100_000
"""Requests."""
_ROUTES = ("/info", "/", "/api/v1/op/", "/api/v1", "/%2e%2e")
_MEDIA = ("text/plain", "application/xml", "multipart/form-data")
_PLAIN = frozenset("!$&'()*+,-./:;=@_~%")

_TEXTS = (
    "", "a", "agent-a", "node-1", "..", "../..", "/etc/passwd", "a/../b", "\x00", "\u202e", "ａ",
    "$(id)", "`id`", "'; rm -rf /", "-rf", "*", "A" * 300, "::ffff:127.0.0.1", "true", "null",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**63, -(2**70), 1e308, [], {}, [[]], [{}], {"": ""}, *_TEXTS,
)  # fmt: skip
_FIELDS = (
    "workspace", "name", "node", "root", "storage", "mode", "tmpfs_size", "gpu", "indices", "tag",
    "command", "gpus", "env", "limits", "archive", "subdir", "excludes", "delete", "offset", "path",
    "nodes", "namespace", "selector", "owner", "identity", "apply", "local", "hybrid_tmpfs_path",
)  # fmt: skip


_WORKSPACE: dict[str, Any] = {
    "name": "agent-a",
    "node": "node-1",
    "storage": {"mode": "hybrid", "tmpfs_size": "1Gi", "hybrid_tmpfs_path": "datasets"},
    "gpu": {"reserve": 1, "cordon_node": False},
}
_GOOD: dict[str, dict[str, Any]] = {
    "workspace.status": {"nodes": ["node-1"]},
    "workspace.create": {"workspace": _WORKSPACE},
    "workspace.sync": {"workspace": _WORKSPACE, "archive": "", "subdir": "code", "excludes": ["x"]},
    "workspace.run": {
        "workspace": _WORKSPACE,
        "tag": "t",
        "command": ["sh", "-c", f"SECRET_TOKEN={CANARY} true"],
        "env": {"API_KEY": CANARY},
        "gpus": [0],
        "limits": {"cpu": "1", "memory": "1Gi"},
    },
    "pods": {"namespace": "default", "selector": "app=web"},
}
"""What is fine but for what it would do."""


@dataclass
class Tally:
    sent: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    """Requests that were answered with 5xx, but for 503, which says that there are no hosts."""
    leaked: list[str] = field(default_factory=list)
    """Requests after which a secret stood in the answer."""
    passed: list[str] = field(default_factory=list)
    """Requests without the right to it that were answered with 200."""

    def __str__(self) -> str:
        shown = ", ".join(f"{status}: {count:,}" for status, count in sorted(self.statuses.items()))
        return (
            f"{self.sent:,} requests ({shown}); {len(self.broken)} broke it, "
            f"{len(self.leaked)} made it tell a secret, {len(self.passed)} got past it"
        )


@dataclass(frozen=True)
class Attempt:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    known: bool
    """Whether the token is one of an identity."""
    operation: str


def attempt(dice: random.Random) -> Attempt:
    operation = dice.choice([*ALLOWED, *ALLOWED, *FORBIDDEN, dice.choice(_TEXTS)])
    path = f"/api/v1/op/{operation}"
    if dice.random() < 0.05:
        path = dice.choice((*_ROUTES, f"{path}/", f"//{path}"))
    known = dice.random() < 0.9
    token = dice.choice(list(TOKENS.values())) if known else dice.choice(("", "x", "token-of-ad"))
    headers = {"authorization": f"Bearer {token}"} if token else {}
    if dice.random() < 0.05:
        headers["content-type"] = dice.choice(_MEDIA)
    body = _body(dice, operation)
    method = "POST" if dice.random() < 0.95 else dice.choice(("GET", "PUT", "DELETE", "PATCH"))
    return Attempt(method, _sendable(path), headers, body, known and bool(token), operation)


def _body(dice: random.Random, operation: str) -> bytes:
    if dice.random() < 0.1:
        return _bytes(dice)
    if operation in _GOOD and dice.random() < 0.6:
        found = json.loads(json.dumps(_GOOD[operation]))
        for _ in range(dice.randrange(3)):
            _spoil(dice, found)
        return json.dumps(found).encode()
    return json.dumps(_object(dice, 0)).encode()


def _spoil(dice: random.Random, value: dict[str, Any]) -> None:
    """Change one thing, anywhere."""
    key = dice.choice([*value, dice.choice(_FIELDS)])
    inner = value.get(key)
    if isinstance(inner, dict) and inner and dice.random() < 0.8:
        _spoil(dice, inner)
    elif dice.random() < 0.2:
        value.pop(key, None)
    else:
        value[key] = copy.deepcopy(_value(dice, 1))  # what is spoiled later must not be shared


def _object(dice: random.Random, depth: int) -> dict[str, Any]:
    found = {dice.choice(_FIELDS): _value(dice, depth) for _ in range(dice.randrange(6))}
    if not depth and dice.random() < 0.7:
        workspace = {"name": dice.choice(_TEXTS), "node": dice.choice(("node-1", "node-9", ".."))}
        found["workspace"] = workspace | _object(dice, depth + 2)
    if dice.random() < 0.2:
        found["env"] = {"API_TOKEN": CANARY, "OTHER": f"https://user:{CANARY}@host/"}
    if dice.random() < 0.1:
        found["command"] = ["curl", "--api-key", CANARY, "-H", f"Authorization: Bearer {CANARY}"]
    return found


def _value(dice: random.Random, depth: int) -> Any:
    if depth < 3 and dice.random() < 0.3:
        return _object(dice, depth + 1)
    if depth < 3 and dice.random() < 0.2:
        return [_value(dice, depth + 1) for _ in range(dice.randrange(4))]
    return dice.choice(_VALUES)


def _bytes(dice: random.Random) -> bytes:
    depth = dice.randrange(2000)
    noise = dice.randbytes(dice.randrange(200))
    return dice.choice((noise, b"[" * depth, b'{"a":' * depth, b"{}{}"))


def _sendable(path: str) -> str:
    return "".join(
        char if char.isascii() and (char.isalnum() or char in _PLAIN) else f"%{ord(char) & 255:02x}"
        for char in path
    )


async def siege(home: Path, requests: int, seed: int) -> Tally:
    audit = home / "audit.jsonl"
    document = changed("operations.allow", ALLOWED)
    document = changed("audit.path", str(audit), document)
    document = changed("constraints.hosts", {"allow_names": ["node-1"]}, document)
    tally, dice = Tally(), random.Random(seed)
    options = ServeOptions(home / "plane", Listen(port=0), memory=True)
    async with serving(options) as server:
        access = resolve(AccessOptions(kubeconfig=str(server.kubeconfig)), {}, None)
        async with fronted(document, access) as front:

            async def agent() -> None:
                while tally.sent < requests:
                    tally.sent += 1
                    if not tally.sent % _BETWEEN_REPORTS:
                        print(tally, flush=True)
                    await _one(front.http, attempt(dice), tally)

            await asyncio.gather(*(agent() for _ in range(_TOGETHER)))
    if CANARY.encode() in audit.read_bytes():
        tally.leaked.append("the audit log")
    return tally


async def _one(http: httpx2.AsyncClient, tried: Attempt, tally: Tally) -> None:
    said = f"{tried.method} {tried.path} {tried.body[:300]!r}"
    try:
        answer = await http.request(
            tried.method, tried.path, headers=tried.headers, content=tried.body
        )
    except httpx2.RemoteProtocolError:
        tally.broken.append(f"no answer: {said}")
        return
    tally.statuses[answer.status_code] += 1
    if answer.status_code >= 500 and answer.status_code != 503:
        tally.broken.append(f"{answer.status_code}: {said}: {answer.text[:200]}")
    if CANARY in answer.text or any(token in answer.text for token in TOKENS.values()):
        tally.leaked.append(said)
    fine = tried.known and tried.operation in ALLOWED
    if answer.status_code == 200 and not fine and answer.request.url.path != "/info":
        tally.passed.append(said)


def main(requests: int, seed: int) -> int:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as home:
        tally = asyncio.run(siege(Path(home), requests, seed))
    print(f"{tally} ({time.perf_counter() - began:.0f} s, seed {seed})")
    wrong = [*tally.broken, *tally.leaked, *tally.passed]
    print("\n".join(wrong[:20]))
    return 1 if wrong else 0


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    sys.exit(main(wanted, int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**32)))

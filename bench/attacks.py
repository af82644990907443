"""A neighbour's latency while a tenant tries to hold the server up: what each attempt costs it."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import gateway_attacks
from bench.settings import Settings
from bench.versions import versions
from tests.served_plane import ServedPlane
from tests.upstream.judge import Judge, Refused

_ROUNDS = 4
_REQUESTS = 400
"""Of the neighbour, in each round and beside each attack."""
_MAPS = "/api/v1/namespaces/default/configmaps"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"

Act = Callable[[Judge, str, int], object]
Json = dict[str, Any]


# -- the attacks: the first act sets the scene --------------------------------------------------


def _definition(schema: Json) -> Json:
    whole = {"type": "object", "properties": {"spec": schema}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}}
    names = {"plural": "probes", "singular": "probe", "kind": "Probe", "listKind": "ProbeList"}
    return {
        "metadata": {"name": "probes.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }


def _probe(judge: Judge, root: str, number: int, spec: object) -> None:
    judge.post(
        f"{root}/apis/example.com/v1/namespaces/default/probes",
        {
            "apiVersion": "example.com/v1",
            "kind": "Probe",
            "metadata": {"name": f"p-{number}"},
            "spec": spec,
        },
    )


def _pattern(judge: Judge, root: str, number: int) -> None:
    if not number:
        judge.post(f"{root}{_CRDS}", _definition({"type": "string", "pattern": "^(a+)+$"}))
    _probe(judge, root, number, "a" * 100_000 + "!")


def _matches(judge: Judge, root: str, number: int) -> None:
    if not number:
        rule = {"rule": "self.matches('^(a|aa)+$')"}
        schema = {"type": "string", "maxLength": 100_000, "x-kubernetes-validations": [rule]}
        judge.post(f"{root}{_CRDS}", _definition(schema))
    _probe(judge, root, number, "a" * 90_000 + "!")


def _policy(expression: str, number: int) -> Json:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"]}
    match = {"resourceRules": [{**rule, "resources": ["configmaps"]}]}
    return {
        "metadata": {"name": f"p-{number}"},
        "spec": {"matchConstraints": match, "validations": [{"expression": expression}]},
    }


def _nested_policy(judge: Judge, root: str, number: int) -> None:
    """A policy whose loops run until the budget ends, put to a write."""
    if not number:
        over = "[" + ", ".join(map(str, range(50))) + "]"
        expression = "true"
        for depth in range(6):
            expression = f"{over}.all(x{depth}, {expression})"
        judge.post(f"{root}{_ADMISSION}/validatingadmissionpolicies", _policy(expression, 0))
        bound = {"policyName": "p-0", "validationActions": ["Deny"]}
        judge.post(
            f"{root}{_ADMISSION}/validatingadmissionpolicybindings",
            {"metadata": {"name": "p"}, "spec": bound},
        )
    judge.post(f"{root}{_MAPS}", {"metadata": {"name": f"m-{number}"}})


def _long_expression(judge: Judge, root: str, number: int) -> None:
    expression = f"{number} == 1 && " + " && ".join(["object.a == 1"] * 5_000)
    path = f"{root}{_ADMISSION}/validatingadmissionpolicies"
    judge.post(path, _policy(expression, number))
    judge.delete(f"{path}/p-{number}")


def _sum(judge: Judge, root: str, number: int) -> None:
    expression = " + ".join(["1"] * 5_000) + f" == {number}"
    judge.post(f"{root}{_ADMISSION}/validatingadmissionpolicies", _policy(expression, number))


def _yaml(judge: Judge, root: str, number: int) -> None:
    judge.exchange("POST", f"{root}{_MAPS}", _YAML, "application/yaml")


_YAML = b"{" + b", ".join(b"k%d: %d" % (key, key) for key in range(190_000)) + b"}"


def _deep_schema(judge: Judge, root: str, number: int) -> None:
    schema: Json = {"type": "string"}
    for _ in range(400):
        schema = {"type": "object", "properties": {"a": schema}}
    judge.post(f"{root}{_CRDS}", _definition(schema))


def _repeated_keys(judge: Judge, root: str, number: int) -> None:
    judge.exchange("POST", f"{root}{_MAPS}", _REPEATED)


_REPEATED = b'{"metadata":{"name":"r"},"data":{' + b'"a":"1",' * 10_000 + b'"a":"1"}}'

ATTACKS: Mapping[str, Act] = {
    "pattern": _pattern,
    "matches": _matches,
    "nested-policy": _nested_policy,
    "5000-terms": _long_expression,
    "5000-sums": _sum,
    "yaml-190000-keys": _yaml,
    "schema-400-deep": _deep_schema,
    "repeated-keys": _repeated_keys,
}


def acts(kind: str) -> Iterator[Act]:
    while True:
        yield ATTACKS[kind]


# -- the neighbour ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Beside:
    server: str
    """`plane` or `gateway`."""
    attack: str
    p50_ms: float
    p99_ms: float
    ratio: float
    """Of the p99 to that of the neighbour alone, the median over the rounds."""


@dataclass(frozen=True, slots=True)
class AttacksResult:
    name: str
    method: str
    versions: Mapping[str, str]
    alone_p99_ms: Mapping[str, float]
    """Of a neighbour that nobody disturbs, by server."""
    beside: tuple[Beside, ...]

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    def render(self) -> str:
        lines = [f"{self.name}: {self.method}"]
        lines += [f"  {'server':8} {'attempt':18} {'p50 ms':>8} {'p99 ms':>8} {'p99 ratio':>10}"]
        for server, p99 in self.alone_p99_ms.items():
            lines.append(f"  {server:8} {'(none)':18} {'':8} {p99:8.2f} {1:9.1f}x")
            lines += [
                f"  {server:8} {each.attack:18} {each.p50_ms:8.2f} {each.p99_ms:8.2f} "
                f"{each.ratio:9.1f}x"
                for each in self.beside
                if each.server == server
            ]
        worst = max(self.beside, key=lambda each: each.ratio)
        lines.append(f"  worst: {worst.ratio:.1f}x ({worst.server}, {worst.attack})")
        return "\n".join(lines)


class _Rounds:
    """What a neighbour of one server measured: alone, and beside each attempt."""

    def __init__(self, server: str, kinds: Iterable[str]) -> None:
        self.server = server
        self.alone: list[float] = []
        """The p99 of each round."""
        self.beside: dict[str, list[list[float]]] = {kind: [] for kind in kinds}

    def results(self) -> Iterator[Beside]:
        for kind, rounds in self.beside.items():
            pairs = zip(rounds, self.alone, strict=True)
            yield Beside(
                self.server,
                kind,
                statistics.median(_p(times, 50) for times in rounds),
                statistics.median(_p(times, 99) for times in rounds),
                statistics.median(_p(times, 99) / alone for times, alone in pairs),
            )


def run(settings: Settings) -> AttacksResult:
    planes, gateway = _Rounds("plane", ATTACKS), _Rounds("gateway", gateway_attacks.ATTACKS)
    with (
        tempfile.TemporaryDirectory(prefix="kvestigate-bench-") as name,
        ServedPlane(Path(name), "--memory") as served,
        served.judge() as judge,
        gateway_attacks.served(Path(name), served.kubeconfig) as port,
    ):
        judge.post("/clusters", {"id": "quiet"})
        path = f"/clusters/quiet/control-plane{_MAPS}"
        judge.post(path, {"metadata": {"name": "a"}, "data": {"text": "x" * 500}})
        neighbour = gateway_attacks.Agent(port, gateway_attacks.TOKENS["neighbour"])
        _times(judge, f"{path}/a")  # warm
        neighbour.times(_REQUESTS)
        for round_ in range(_ROUNDS):  # interleaved, so that a slow minute hits all alike
            with served.judge() as fresh:  # an idle connection would be closed by now
                _plane_round(planes, served, fresh, f"{path}/a", round_)
            _gateway_round(gateway, neighbour, port)
            settings.progress(f"round {round_ + 1} of {_ROUNDS}")
    return AttacksResult(
        "attacks",
        f"small requests of a neighbour on one connection, {_ROUNDS} rounds of {_REQUESTS}, "
        "interleaved; another process attacks without a pause",
        versions(),
        {each.server: statistics.median(each.alone) for each in (planes, gateway)},
        (*planes.results(), *gateway.results()),
    )


def _plane_round(
    rounds: _Rounds, served: ServedPlane, judge: Judge, path: str, round_: int
) -> None:
    rounds.alone.append(_p(_times(judge, path), 99))
    for kind, times in rounds.beside.items():
        plane = f"{kind}-{round_}"
        judge.post("/clusters", {"id": plane})
        with _attacked(served, plane, kind):
            times.append(_times(judge, path))
        with suppress(Refused):
            judge.delete(f"/clusters/{plane}")


def _gateway_round(rounds: _Rounds, neighbour: gateway_attacks.Agent, port: int) -> None:
    rounds.alone.append(_p(neighbour.times(_REQUESTS), 99))
    for kind, times in rounds.beside.items():
        with gateway_attacks.attacked(port, kind):
            times.append(neighbour.times(_REQUESTS))


@contextmanager
def _attacked(served: ServedPlane, plane: str, kind: str) -> Iterator[None]:
    told = (str(served.port), str(served.ca_file), served.token, plane, kind)
    command = [sys.executable, "-m", "bench.noise", *told]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it has begun
        try:
            yield
        finally:
            process.kill()


def _times(judge: Judge, path: str) -> list[float]:
    """Milliseconds of each request."""
    found = []
    for _ in range(_REQUESTS):
        began = time.perf_counter()
        judge.get(path)
        found.append((time.perf_counter() - began) * 1000)
    return found


def _p(times: list[float], percent: int) -> float:
    return sorted(times)[min(len(times) - 1, len(times) * percent // 100)]

"""A neighbour's latency while a tenant tries to hold the server up: what each attempt costs it."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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


_YAML = b"{" + b", ".join(b"k%d: %d" % (key, key) for key in range(200_000)) + b"}"


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
    "yaml-200000-keys": _yaml,
    "schema-400-deep": _deep_schema,
    "repeated-keys": _repeated_keys,
}


def acts(kind: str) -> Iterator[Act]:
    while True:
        yield ATTACKS[kind]


# -- the neighbour ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Beside:
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
    alone_p99_ms: float
    beside: tuple[Beside, ...]

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    def render(self) -> str:
        lines = [f"{self.name}: {self.method}", f"  alone: p99 {self.alone_p99_ms:.2f} ms"]
        lines += [
            f"  beside {each.attack:18} p50 {each.p50_ms:6.2f} ms  p99 {each.p99_ms:6.2f} ms  "
            f"{each.ratio:.1f}x"
            for each in self.beside
        ]
        return "\n".join(lines)


def run(settings: Settings) -> AttacksResult:
    alone: list[list[float]] = []
    beside: dict[str, list[list[float]]] = {kind: [] for kind in ATTACKS}
    with (
        tempfile.TemporaryDirectory(prefix="kvestigate-bench-") as name,
        ServedPlane(Path(name), "--memory") as served,
        served.judge() as judge,
    ):
        judge.post("/clusters", {"id": "quiet"})
        path = f"/clusters/quiet/control-plane{_MAPS}"
        judge.post(path, {"metadata": {"name": "a"}, "data": {"text": "x" * 500}})
        _times(judge, f"{path}/a")  # warm
        for round_ in range(_ROUNDS):  # interleaved, so that a slow minute hits all alike
            alone.append(_times(judge, f"{path}/a"))
            for kind, times in beside.items():
                plane = f"{kind}-{round_}"
                judge.post("/clusters", {"id": plane})
                with _attacked(served, plane, kind):
                    times.append(_times(judge, f"{path}/a"))
                with suppress(Refused):
                    judge.delete(f"/clusters/{plane}")
            settings.progress(f"round {round_ + 1} of {_ROUNDS}")
    base = [_p(times, 99) for times in alone]
    return AttacksResult(
        "attacks",
        f"GET of a neighbour on one connection, {_ROUNDS} rounds of {_REQUESTS}, interleaved; "
        "another process attacks without a pause",
        versions(),
        statistics.median(base),
        tuple(_beside(kind, rounds, base) for kind, rounds in beside.items()),
    )


def _beside(kind: str, rounds: list[list[float]], base: list[float]) -> Beside:
    ratios = [_p(times, 99) / alone for times, alone in zip(rounds, base, strict=True)]
    p50 = statistics.median(_p(times, 50) for times in rounds)
    p99 = statistics.median(_p(times, 99) for times in rounds)
    return Beside(kind, p50, p99, statistics.median(ratios))


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
